# SPDX-License-Identifier: Apache-2.0
"""`dag_fold`, `dag_rewrite` and `dag_intern` in obvious Python.

Each is a recursion with a memo over the graph that `reference.flatten` makes.
"""

import collections
import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from reference import SpecNode, flatten
from reference_kinds import (
    Callbacks,
    Fields,
    Registry,
    Shape,
    build_node,
    has_identity,
    is_tuple_like,
)

Functions = Callable[..., Any] | Mapping[type, Callable[..., Any]]
PLAIN = (bool, int, float, complex, str, bytes, range)


def function_for(functions: Functions, obj: Any) -> Callable[..., Any] | None:
    """The function for an object's class: the first along its MRO."""
    if not isinstance(functions, Mapping):
        return functions
    for cls in type(obj).__mro__:
        if cls in functions:
            return functions[cls]
    return None


def by_parameters(node: SpecNode, results: list[Any]) -> tuple[Any, ...]:
    """The results for the children, as a fold's function gets them.

    Those of a class whose fields are what its instances have come in the order of the parameters of
    its `__init__`, if each has the name of one.
    """
    shape = node.shape
    if shape is None or not isinstance(shape.registration, Fields) or not results:
        return tuple(results)
    if shape.registration.data is not None or dataclasses.is_dataclass(shape.cls):
        return tuple(results)
    cls: Any = shape.cls
    names = list(inspect.signature(cls.__init__).parameters)
    found = dict(zip(shape.entries, results, strict=True))
    if not names or not set(found) <= set(names[1:]):
        return tuple(results)
    return tuple(found[name] for name in names[1:] if name in found)


def fold(f: Functions, tree: Any, **options: Any) -> Any:
    """What `f` gives for the root; it gets the object, and what it gave for the children."""
    memo: dict[SpecNode, Any] = {}

    def visit(node: SpecNode) -> Any:
        if node not in memo:
            function = function_for(f, node.obj)
            if function is None:
                raise TypeError(type(node.obj))
            memo[node] = function(node.obj, by_parameters(node, list(map(visit, node.children))))
        return memo[node]

    return visit(flatten(tree, **options)[1].root)


def fold_with_context(f: Functions, tree: Any, down: Functions, init: Any, **options: Any) -> Any:
    """The same, where `down` gives the context of a node's children."""
    memo: dict[Hashable, Any] = {}

    def visit(node: SpecNode, context: Any) -> Any:
        key = node, type(context), context
        if key not in memo:
            below, going_down = context, function_for(down, node.obj)
            if node.children and going_down is not None:
                below = going_down(node.obj, context)
            children = by_parameters(node, [visit(child, below) for child in node.children])
            function = function_for(f, node.obj)
            if function is None:
                raise TypeError(type(node.obj))
            memo[key] = function(node.obj, children, context)
        return memo[key]

    return visit(flatten(tree, **options)[1].root, init)


def rewrite(f: Functions, tree: Any, *, registry: Registry, **options: Any) -> Any:
    """The tree with what `f` gives in the place of each object, children first."""
    memo: dict[SpecNode, Any] = {}

    def visit(node: SpecNode) -> Any:
        if node not in memo:
            children = [visit(child) for child in node.children]
            given = node.obj
            originals = [child.obj for child in node.children]
            if any(new is not old for new, old in zip(children, originals, strict=True)):
                assert node.shape is not None
                given = build_node(node.shape, children)
            function = function_for(f, given)
            result = given if function is None else function(given)
            if result is None and given is not None:
                raise TypeError(f"None for {given!r}")
            memo[node] = given if is_same(given, result, registry) else result
        return memo[node]

    return visit(flatten(tree, registry=registry, **options)[1].root)


def is_same(a: Any, b: Any, registry: Registry) -> bool:
    """The same object, or values of one type that are equal."""
    if a is b:
        return True
    if type(a) is not type(b) or type(a) in registry:
        return False
    if is_tuple_like(type(a)):
        return len(a) == len(b) and all(is_same(*pair, registry) for pair in zip(a, b, strict=True))
    return type(a) in PLAIN and is_equal_number(a, b)


def is_equal_number(a: Any, b: Any) -> bool:
    """Equal values of one type; 0.0 and -0.0 are two, any NaN is any other."""
    if isinstance(a, complex):
        return is_equal_number(a.real, b.real) and is_equal_number(a.imag, b.imag)
    if isinstance(a, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return both_nan or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, range):
        return (a.start, a.stop, a.step) == (b.start, b.stop, b.step)
    return bool(a == b)


@dataclass(eq=False)
class Unique:
    """The first of equal parts, and what stands for all of them."""

    node: SpecNode
    children: list["Unique"]
    obj: Any


def intern(tree: Any, *, registry: Registry, **options: Any) -> Any:
    """The tree in which each part is the first one that it equals."""
    found: list[Unique] = []
    memo: dict[SpecNode, Unique] = {}

    def is_value(node: SpecNode) -> bool:
        return node.shape is None and not has_identity(node.obj, registry)

    def equals(node: SpecNode, children: list[Unique], other: Unique) -> bool:
        if node.shape is None or other.node.shape is None:
            both_leaves = node.shape is other.node.shape
            if both_leaves and is_value(node) and is_value(other.node):
                return is_same(node.obj, other.obj, registry)
            return both_leaves and node.obj is other.node.obj
        return children == other.children and is_same_shape(node.shape, other.node.shape)

    def stands_for(node: SpecNode) -> Any:
        """A value stays where it is; it has no identity that could be shared."""
        return node.obj if is_value(node) else memo[node].obj

    def visit(node: SpecNode) -> Unique:
        if node not in memo:
            children = [visit(child) for child in node.children]
            known = [other for other in found if equals(node, children, other)]
            if known:
                memo[node] = known[0]
            else:
                below = [stands_for(child) for child in node.children]
                obj = node.obj
                if any(x is not child.obj for x, child in zip(below, node.children, strict=True)):
                    assert node.shape is not None
                    obj = build_node(node.shape, below)
                memo[node] = Unique(node, children, obj)
                found.append(memo[node])
        return memo[node]

    root = flatten(tree, registry=registry, **options)[1].root
    visit(root)
    return stands_for(root)


def is_same_shape(a: Shape, b: Shape) -> bool:
    """Of one class, with the same keys and aux_data. A custom node's entries are only names."""
    if a.cls is not b.cls or a.kind != b.kind:
        return False
    same_entries = isinstance(a.registration, Callbacks) or is_same_aux(a.entries, b.entries)
    return same_entries and is_same_aux(a.aux, b.aux)


def is_same_aux(a: Any, b: Any) -> bool:
    """As `is_same`, where what builtin containers hold counts, and other objects by `==`."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, type):
        return False
    if isinstance(a, dict):
        return is_same_aux(list(a.items()), list(b.items()))
    if isinstance(a, set | frozenset):
        left = list(b)
        for x in a:
            found = [i for i, y in enumerate(left) if is_same_aux(x, y)]
            if not found:
                return False
            del left[found[0]]
        return not left
    if isinstance(a, functools.partial):
        return is_same_aux((a.func, a.args, a.keywords), (b.func, b.args, b.keywords))
    if isinstance(a, slice):
        return is_same_aux((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if dataclasses.is_dataclass(a) and a.__hash__ is not None:
        return all(
            is_same_aux(getattr(a, f.name), getattr(b, f.name))
            for f in dataclasses.fields(a)
            if f.compare
        )
    if isinstance(a, tuple | list | collections.deque):
        return len(a) == len(b) and all(map(is_same_aux, a, b))
    if type(a) in PLAIN:
        return is_equal_number(a, b)
    return type(a).__hash__ is not None and bool(a == b)
