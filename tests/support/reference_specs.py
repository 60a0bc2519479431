# SPDX-License-Identifier: Apache-2.0
"""What the operations on specs mean, in obvious Python.

Nearly all of it is one law: the spec that an operation gives is the structure of what unflattening
would build. So a structure is built here as objects, with other parts where the operation wants
them, and flattened again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import reference as ref
from reference_kinds import Shape, build_node

Heads = Callable[[Shape], Shape]


class Token:
    """A leaf with identity, of which there is one for each distinct leaf."""


def build(
    root: ref.SpecNode,
    leaf: Callable[[ref.SpecNode], Any] = lambda _: Token(),
    head: Heads = lambda shape: shape,
) -> Any:
    """The objects that a structure stands for.

    Args:
        leaf: What stands for a leaf; asked once for each distinct one.
        head: Gives each node another shape; asked once for each distinct one, from below.
    """
    memo: dict[ref.SpecNode, Any] = {}

    def visit(node: ref.SpecNode) -> Any:
        if node not in memo:
            if node.shape is None:
                memo[node] = leaf(node)
            else:
                children = [visit(child) for child in node.children]
                memo[node] = build_node(head(node.shape), children)
        return memo[node]

    return visit(root)


def structure(tree: Any, like: ref.Spec) -> ref.Spec:
    """The structure of a tree, with the options of another spec."""
    return ref.flatten(
        tree, none_is_leaf=like.none_is_leaf, namespace=like.namespace, registry=like.registry
    )[1]


def children(spec: ref.Spec) -> list[ref.Spec]:
    """Of each child the structure of it alone."""
    return [structure(build(child), spec) for child in spec.root.children]


def one_level(spec: ref.Spec) -> ref.Spec | None:
    """A leaf in each slot."""
    shape = spec.root.shape
    if shape is None:
        return None
    return structure(build_node(shape, [Token() for _ in spec.root.children]), spec)


def is_one_level(spec: ref.Spec) -> bool:
    """A node that holds only leaves."""
    return spec.root.shape is not None and all(child.shape is None for child in spec.root.children)


def compose(outer: ref.Spec, inner: ref.Spec) -> ref.Spec:
    """The inner structure in the place of each leaf, once for each distinct one."""
    return structure(build(outer.root, lambda _: build(inner.root)), outer)


def transform(spec: ref.Spec, head: Heads, inner: ref.Spec) -> ref.Spec:
    """Other shapes for the nodes, and a structure for the leaves."""
    return structure(build(spec.root, lambda _: build(inner.root), head), spec)


def collect(shape: Shape, specs: list[ref.Spec]) -> ref.Spec:
    """A node that holds what each of the specs stands for, built anew for each slot."""
    return structure(build_node(shape, [build(spec.root) for spec in specs]), specs[0])


def slots(x: ref.SpecNode, y: ref.SpecNode) -> Iterator[tuple[ref.SpecNode, ref.SpecNode]]:
    """The children of two nodes that go together; `ValueError` where the nodes don't."""
    assert x.shape
    assert y.shape
    if x.shape.kind == y.shape.kind == "dict":
        if set(x.shape.entries) != set(y.shape.entries):
            raise ValueError("other keys")
    elif x.shape.cls is not y.shape.cls or len(x.children) != len(y.children):
        raise ValueError("another class, or another number of children")
    elif x.shape.registration and x.shape.aux != y.shape.aux:
        raise ValueError("other aux_data")
    elif x.shape.kind == "fields" and set(x.shape.entries) != set(y.shape.entries):
        raise ValueError("other fields")
    if x.shape.kind not in ("dict", "fields"):
        return zip(x.children, y.children, strict=True)
    by_entry = dict(zip(y.shape.entries, y.children, strict=True))
    return zip(x.children, [by_entry[entry] for entry in x.shape.entries], strict=True)


def is_prefix(a: ref.Spec, b: ref.Spec, strict: bool = False) -> bool:
    """Each object of `a` goes with one of `b`."""
    partners: dict[ref.SpecNode, ref.SpecNode] = {}
    grown = False

    def visit(x: ref.SpecNode, y: ref.SpecNode) -> bool:
        nonlocal grown
        if partners.setdefault(x, y) is not y:
            return False
        if x.shape is None or y.shape is None:
            grown = grown or y.shape is not None
            return x.shape is None
        try:
            return all(visit(*pair) for pair in slots(x, y))
        except ValueError:
            return False

    fits = a.none_is_leaf == b.none_is_leaf and visit(a.root, b.root)
    shares_more = len(set(partners.values())) < len(partners)
    return fits and (not strict or grown or shares_more)


class RefusedError(ValueError):
    """What is wrong with two structures: nodes that don't fit, leaves with two answers, or both."""

    def __init__(self, problems: set[str]) -> None:
        super().__init__(problems)
        self.problems = problems


def common_suffix(a: ref.Spec, b: ref.Spec) -> ref.Spec:
    """The nodes of `a`, and in the place of its leaves what `b` has there."""
    found: dict[ref.SpecNode, ref.SpecNode | None] = {}
    problems: set[str] = set()

    def text_of(y: ref.SpecNode | None) -> str:
        return "*" if y is None else ref.text(structure(build(y), b))

    def visit(x: ref.SpecNode, y: ref.SpecNode | None) -> None:
        if y is not None and y.shape is None:
            y = None
        if x.shape is None:
            if text_of(found.setdefault(x, y)) != text_of(y):
                problems.add("sharing")
        elif y is None:
            for child in x.children:
                visit(child, None)
        else:
            try:
                below = list(slots(x, y))
            except ValueError:
                problems.add("fit")
                return
            for pair in below:
                visit(*pair)

    def leaf(x: ref.SpecNode) -> Any:
        y = found[x]
        return Token() if y is None else build(y)

    visit(a.root, b.root)
    if problems:
        raise RefusedError(problems)
    return structure(build(a.root, leaf), a)


def walk(
    spec: ref.Spec,
    leaves: list[Any],
    f_node: Callable[[Shape, list[Any]], Any],
    f_leaf: Callable[[Any], Any],
) -> Any:
    """From below, once for each distinct node and leaf."""
    memo: dict[ref.SpecNode, Any] = {}

    def visit(node: ref.SpecNode) -> Any:
        if node not in memo:
            if node.shape is None:
                memo[node] = f_leaf(leaves[node.leaf])
            else:
                memo[node] = f_node(node.shape, [visit(child) for child in node.children])
        return memo[node]

    return visit(spec.root)


def node_data(shape: Shape) -> Any:
    """What `walk` hands out beside the class and the children."""
    if shape.kind == "dict":
        keys = list(shape.entries)
        is_default = shape.cls is defaultdict
        return (shape.aux[0], keys) if is_default else keys
    if shape.kind in ("namedtuple", "structseq"):
        return shape.cls
    if shape.kind == "fields":
        return shape.entries, tuple(shape.aux.values())
    return shape.aux
