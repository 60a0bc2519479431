# SPDX-License-Identifier: Apache-2.0
"""The Python functions that the core calls when it first sees a class."""

import enum
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import optree

import pydag._core as _core
from pydag.arrays.kinds import is_class_of

from .optree_private import is_dict_insertion_ordered, optree_registry
from .past_constructor import builder_of_optree

# (flatten, unflatten, path_entry_type), or what `_core.foreign_registration` makes of more.
Foreign = tuple[Callable[..., Any], Callable[..., Any], type] | object
Lookup = Callable[[type], Foreign | None]

# The classes that `copy.deepcopy` treats as atomic. Of their subclasses only metaclasses and enums.
_VALUES = (
    type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented),
    types.FunctionType, types.BuiltinFunctionType, types.CodeType, property, weakref.ref,
)  # fmt: skip
# By identity: a metaclass may make a class equal to any other class.
_VALUE_IDS = frozenset(map(id, _VALUES))

_value_bases: list[type] = [type, enum.Enum]

_fallbacks: list[tuple[Lookup, Callable[[], Iterable[object]]]] = []


def add_fallback(
    lookup: Lookup, registry: dict[Any, Any], classes: Callable[[], Iterable[object]] = lambda: ()
) -> None:
    """Call `lookup` for classes in `registry` that neither pydag nor optree knows.

    Args:
        classes: Lists the classes that it knows.
    """
    _fallbacks.append((lookup, classes))
    _core.watch_registry(registry)
    _core.clear_caches()


def set_value_base(base: type) -> None:
    """Treat the instances of a class and its subclasses as values, which have no identity."""
    _value_bases.append(base)
    _core.set_value_base(base)


def fallback_classes() -> list[Iterable[object]]:
    """The classes that each of these lookups knows."""
    return [classes() for _, classes in _fallbacks]


def is_found_by_identity(cls: type) -> bool:
    """Whether a dict finds a class by identity: a metaclass could make it equal to any other."""
    meta = type(cls)
    return meta.__hash__ is type.__hash__ and meta.__eq__ is type.__eq__


def optree_entry(cls: type, namespace: str) -> Any:
    """optree's registration of a class, or None."""
    if is_found_by_identity(cls):
        return optree.register_pytree_node.get(cls, namespace=namespace)
    entries = list(optree_registry.values())
    found = (e for e in entries if e.type is cls and e.namespace == namespace)
    return next(found, None)


def _find_foreign(cls: type, namespace: str) -> Foreign | None:
    """How a class registered with another library, in just this namespace, is opened and built."""
    entry = optree_entry(cls, namespace)
    if (
        entry is not None
        and entry.kind == optree.PyTreeKind.CUSTOM
        and entry.namespace == namespace
    ):
        build = builder_of_optree(cls, entry.unflatten_func)
        return entry.flatten_func, build, entry.path_entry_type
    if namespace == "":
        for lookup, _ in _fallbacks:
            if (found := lookup(cls)) is not None:
                return found
    return None


def _is_value(cls: type) -> bool:
    is_value = id(cls) in _VALUE_IDS or issubclass(cls, tuple(_value_bases))
    is_value = is_value or is_class_of(cls, "numpy", "bool_")
    if not is_value and not _fallbacks:
        _warn_of_module(cls)
    return is_value


# The base classes of modules that are nodes as soon as `pydag.jaxinterop` is imported.
_MODULES = {"equinox": "Module", "flax.nnx": "Pytree"}


def _warn_of_module(cls: type) -> None:
    """Warns that modules of a JAX library are leaves, since `pydag.jaxinterop` isn't imported."""
    for library, name in _MODULES.items():
        base = getattr(sys.modules.get(library), name, None)
        if base is not None and any(above is base for above in cls.__mro__):
            warnings.warn(
                f"{cls.__qualname__} is a module of {library}, and pydag takes it for one leaf\n"
                "  Write `import pydag.jaxinterop` first: with it such modules are nodes.",
                stacklevel=3,
            )


_core.set_lookup(_find_foreign, _is_value, is_dict_insertion_ordered)
_core.watch_registry(optree_registry)
