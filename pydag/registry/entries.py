# SPDX-License-Identifier: Apache-2.0
"""The registrations of a class: with pydag, with optree, or with JAX."""

import builtins
import inspect
from collections import namedtuple
from typing import Any, NamedTuple, cast, overload

import optree

import pydag._core as _core
from pydag.typing import FlattenFunction, UnflattenFunction

from . import lookup
from .optree_private import GLOBAL_NAMESPACE


class RegistryEntry(NamedTuple):
    """How a class is opened and built; `unregister_pydag_node` returns the entry that it removes.

    Args:
        type: The class.
        flatten_func, unflatten_func: Its functions; None for a class of `register_fields`.
        path_entry_type: The class of its entries in an accessor.
        kind: The kind of node that its instances are.
        namespace: Where the registration counted; "" is everywhere.
    """

    type: builtins.type
    flatten_func: FlattenFunction | None
    unflatten_func: UnflattenFunction | None
    path_entry_type: builtins.type[optree.PyTreeEntry]
    kind: optree.PyTreeKind
    namespace: str


@overload
def get(cls: type, /, *, namespace: str = "") -> RegistryEntry | None: ...
@overload
def get(cls: None = None, /, *, namespace: str = "") -> dict[type, RegistryEntry]: ...
def get(
    cls: type | None = None, /, *, namespace: str = ""
) -> dict[type, RegistryEntry] | RegistryEntry | None:
    """The registration of a class, or of all classes.

    Args:
        cls: The class; left out: all classes that the namespace sees.
        namespace: The namespace to search first, before the global one.

    Returns:
        The entry of the class, or None where it is a leaf; or a dict of entries by class.

    Raises:
        TypeError: `cls` is not a class, or the namespace is no string.
        ValueError: The namespace has a lone surrogate.
    """
    if type(namespace) is str and not namespace:
        if fixed := _fixed_entries.get(id(cls)):
            return fixed
        if cls is dict and (kept := _builtin_entries.get(id(_optree_get(dict)))):
            return kept[1]
    if namespace is GLOBAL_NAMESPACE:
        namespace = ""
    if cls is not None and cls is not cast("type", namedtuple) and not inspect.isclass(cls):
        raise TypeError(f"Expected a class or None, got {cls!r}.")
    _core.check_namespace(namespace)
    namespace = str.__str__(namespace)
    if cls is None:
        return _get_all(namespace)
    known = lookup.optree_entry(cls, namespace)
    kept = _builtin_entries.get(id(known))
    if kept is not None and kept[1].type is cls:
        return kept[1]
    is_builtin = known is not None and known.type is cls and known.kind != optree.PyTreeKind.CUSTOM
    if inspect.isclass(cls) and not is_builtin:
        found = _core.find_registration(cls, namespace)
        if found is not None:
            return RegistryEntry(cls, *found[:3], optree.PyTreeKind.CUSTOM, found[3])
    return None if known is None else _entry_of_optree(known)


_optree_get: Any = optree.register_pytree_node.get
# By the id of optree's entry, which is kept beside ours.
_builtin_entries: dict[int, tuple[Any, RegistryEntry]] = {}
# By the id of a builtin class that has one entry for good. (A dict's depends on the namespace.)
_fixed_entries: dict[int, RegistryEntry] = {}


def _entry_of_optree(entry: Any) -> RegistryEntry:
    """optree's entry as a `RegistryEntry`; for a builtin class always the same object."""
    if id(entry) in _builtin_entries:
        return _builtin_entries[id(entry)][1]
    ours = RegistryEntry(*(getattr(entry, name) for name in RegistryEntry._fields))
    if ours.kind != optree.PyTreeKind.CUSTOM:
        ours = _builtin_entries.setdefault(id(entry), (entry, ours))[1]
        if ours.type in (list, tuple, type(None)):
            _fixed_entries[id(ours.type)] = ours
    return ours


def _get_all(namespace: str) -> dict[type, RegistryEntry]:
    entries = {
        cls: _entry_of_optree(entry) for cls, entry in _optree_get(namespace=namespace).items()
    }
    others: list[Any] = [c for space, c in _core.registered_classes() if space in ("", namespace)]
    for known in lookup.fallback_classes():
        others += known
    for cls in others:
        if isinstance(cls, type) and (entry := get(cls, namespace=namespace)) is not None:
            entries[cls] = entry
    return entries
