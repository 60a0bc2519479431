# SPDX-License-Identifier: Apache-2.0
"""The part of `PyDagSpec.to_treespec` that depends on optree."""

import functools
from collections import OrderedDict, defaultdict, deque
from typing import Any, TypeAlias, cast

import optree

from pydag.structure.text import short_repr

from .deref import Alias

State: TypeAlias = tuple[Any, ...]
"""What `optree.PyTreeSpec.__getstate__` returns."""


def open_as_optree(
    cls: type, flatten: Any, unflatten: Any, namespace: str, given: tuple[Any, Any]
) -> tuple[Any, Any] | str:
    """(aux_data, entries) of a registered node in optree; or the reason, in words, for its lack.

    Args:
        flatten: The class's flatten function in pydag; None: the core opens the class itself.
        given: (aux_data, entries); without a function (an object, what stands in its slots).
    """
    entry = optree.register_pytree_node.get(cls, namespace=namespace)
    if entry is None or entry.kind != optree.PyTreeKind.CUSTOM:
        return f"optree doesn't know the class {short_repr(cls)}: register it there, too."
    if flatten is not None:
        is_same = entry.flatten_func is flatten and entry.unflatten_func is unflatten
        return given if is_same else f"optree opens the class {short_repr(cls)} by other functions."
    obj, slots = given
    children, aux_data, *entries = entry.flatten_func(obj)
    if [id(child) for child in children] != [id(slot) for slot in slots]:
        return f"optree finds other children in the class {short_repr(cls)}."
    return aux_data, tuple(entries[0]) if entries and entries[0] is not None else None


def from_state(state: State) -> optree.PyTreeSpec:
    """The PyTreeSpec with this state; no function of the user's runs."""
    _check_format()
    spec: Any = optree.PyTreeSpec.__new__(optree.PyTreeSpec)
    spec.__setstate__(state)
    return cast("optree.PyTreeSpec", spec)


@functools.cache
def _check_format() -> None:
    """Raises if specs of the installed optree have another state than the core writes."""
    sample = [
        {"b": 0, "a": None},
        OrderedDict(k=0),
        defaultdict(int, k=0),
        (deque(maxlen=2), Alias(7)),
    ]
    leaf = (1, 0, None, None, None, 1, 1, None)
    nodes = (
        *((2, 0, None, None, None, 0, 1, None), leaf),
        (5, 2, ["a", "b"], None, None, 1, 3, {"b": None, "a": None}),
        *(leaf, (7, 1, ["k"], None, None, 1, 2, None)),
        *(leaf, (8, 1, (int, ["k"]), None, None, 1, 2, {"k": None})),
        *((9, 0, 2, None, None, 0, 1, None), (0, 0, 7, (), Alias, 0, 1, None)),
        *((3, 2, None, None, None, 0, 3, None), (4, 4, None, None, None, 3, 11, None)),
    )
    found: Any = optree.tree_structure(cast("Any", sample))
    if found.__getstate__() != (nodes, False, ""):
        raise RuntimeError(f"pydag can't make a PyTreeSpec of optree {optree.__version__}")
