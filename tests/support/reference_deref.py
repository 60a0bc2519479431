# SPDX-License-Identifier: Apache-2.0
"""`deref` and `reref` in obvious Python: sharing written into the tree itself, and read back."""

from dataclasses import dataclass
from typing import Any

from reference import NOTHING, CycleError, SharingError, SpecNode, distinct, flatten, shared
from reference_kinds import FROZEN_DICTS, Callbacks, Registry, Shape, build_node, check_nones


@dataclass(eq=False)
class Anchor:
    """Where a shared object is met first."""

    index: int
    value: Any


@dataclass(eq=False)
class Alias:
    """Where it is met again."""

    index: int


@dataclass(eq=False)
class Node:
    """Stands for an object that other libraries could not open."""

    type: type
    aux_data: Any  # the whole Shape, for whoever builds the object again
    children: tuple[Any, ...]


def rebuild_node(aux: tuple[type, Any], children: tuple[Any, ...]) -> Node:
    """A `Node` from what its registration below gives."""
    return Node(*aux, children)


MARKS: Registry = {
    Anchor: Callbacks(lambda a: ((a.value,), a.index), lambda i, c: Anchor(i, *c), foreign=True),
    Alias: Callbacks(lambda a: ((), a.index), lambda index, _: Alias(index), foreign=True),
    Node: Callbacks(lambda n: (n.children, (n.type, n.aux_data)), rebuild_node, foreign=True),
}


def must_be_wrapped(shape: Shape) -> bool:
    """Whether JAX could not open a node of this shape."""
    registration = shape.registration
    if registration is not None:
        return not registration.foreign
    return shape.kind in ("deque", "structseq") or shape.cls in FROZEN_DICTS


def deref(tree: Any, *, registry: Registry = NOTHING, **options: Any) -> Any:
    """The tree with an `Anchor` at a shared object's first place and an `Alias` at the others."""
    leaves, spec = flatten(tree, registry={**registry, **MARKS}, **options)
    nodes = distinct(spec.root)
    used = [n.shape.aux for n in nodes if n.shape and n.shape.cls in (Anchor, Alias)]
    first_free = max(used, default=-1) + 1
    index = {node: first_free + i for node, i in shared(spec.root).items()}
    anchored: set[SpecNode] = set()

    def visit(node: SpecNode) -> Any:
        if node in anchored:
            return Alias(index[node])
        if node in index:
            anchored.add(node)
        value = leaves[node.leaf] if node.shape is None else wrap(node.shape, node.children)
        return Anchor(index[node], value) if node in index else value

    def wrap(shape: Shape, children: list[SpecNode]) -> Any:
        below = [visit(child) for child in children]
        if must_be_wrapped(shape):
            return Node(shape.cls, shape, tuple(below))
        return build_node(shape, below)

    return visit(spec.root)


def reref(tree: Any, *, registry: Registry = NOTHING, **options: Any) -> Any:
    """The inverse of `deref`: one object for each index, met in any order."""
    leaves, spec = flatten(tree, registry={**registry, **MARKS}, **options)
    anchors: dict[int, SpecNode] = {}
    for node in distinct(spec.root):
        if node.shape and node.shape.cls is Anchor:
            if node.shape.aux in anchors:
                raise SharingError(f"two anchors of index {node.shape.aux}")
            anchors[node.shape.aux] = node
    memo: dict[SpecNode, Any] = {}
    building: list[SpecNode] = []

    def visit(node: SpecNode) -> Any:
        if node.shape is None:
            return leaves[node.leaf]
        if node.shape.cls is Alias:
            if node.shape.aux not in anchors:
                raise SharingError(f"alias {node.shape.aux} at {node.path} has no anchor")
            return visit(anchors[node.shape.aux])
        if node in building:
            raise CycleError(node.path, node.path)
        if node not in memo:
            building.append(node)
            children = [visit(child) for child in node.children]
            memo[node] = make(node.shape, children)
            if spec.none_is_leaf and any(child is None for child in children):
                check_nones(shape_of(node.shape), memo[node], children)
            building.pop()
        return memo[node]

    return visit(spec.root)


def make(shape: Shape, children: list[Any]) -> Any:
    """What a node of a derefed tree stands for."""
    return children[0] if shape.cls is Anchor else build_node(shape_of(shape), children)


def shape_of(shape: Shape) -> Shape:
    """The shape of the node for which a `Node` stands; any other is its own."""
    found: Shape = shape.aux[1] if shape.cls is Node else shape
    return found
