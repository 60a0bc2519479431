# SPDX-License-Identifier: Apache-2.0
"""Static values: what may stand at a leaf that JAX doesn't trace, and which of them are equal.

A static value is part of what a function is compiled for. So it must be a *value*: something that
is compared by what it is. An object that holds arrays out of sight would be a constant: neither
traced nor trained, and stale when it changes. The core compares them: `is_same_value`.
"""

import contextlib
import enum
import functools
import itertools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from pydag.registry.class_table import ClassTable, bases_of, inherits, names_in
from pydag.structure.text import short_repr
from pydag.structure.walk import Walk

ATOMS = (str, bytes, bool, int, type(None))


_VALUES = (
    *ATOMS, float, complex, types.EllipsisType, range, type, enum.Enum, np.generic, np.dtype,
    np.ufunc, type(np.transpose), types.FunctionType, types.BuiltinFunctionType,
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
    types.ModuleType,
)  # fmt: skip
# These hold arrays, or show what something else holds.
_NO_VALUES = (
    types.MethodType, types.MethodWrapperType, types.MappingProxyType, np.ndarray, jax.Array,
    jax.core.Tracer, memoryview, weakref.ref, *weakref.ProxyTypes,
)  # fmt: skip


def _has_value_class(value: Any) -> bool:
    cls = type(value)
    if any(inherits(cls, base) for base in _NO_VALUES):
        return False
    if any(inherits(cls, base) for base in _VALUES):
        return True
    module = names_in(cls).get("__module__")
    if isinstance(module, str) and module.partition(".")[0] in ("jax", "jaxlib"):
        return True  # meshes, shardings, devices, what `jax.jit` made
    own = [names_in(base) for base in bases_of(cls) if base is not object]
    hashes = next((names["__hash__"] for names in own if "__hash__" in names), None)
    return hashes is not None and any("__eq__" in names for names in own)


_is_of_value_class = ClassTable(_has_value_class).of


def _parts(value: Any) -> list[Any] | None:
    """The parts that decide whether a value is one; None where its class alone does."""
    if type(value) is types.BuiltinMethodType:  # of an object's, such as `[].append`
        owner = value.__self__
        return None if owner is None or isinstance(owner, types.ModuleType | type) else [owner]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, slice) and slice.__hash__ is not None:  # since Python 3.12
        return [value.start, value.stop, value.step]
    return list(value) if isinstance(value, tuple | frozenset) else None


def _parts_at_any_depth(value: Any) -> list[Any]:
    """What a value consists of: the parts of tuples, frozensets and partials, at any depth."""
    walk, found = Walk([value], key=id), []
    for item in walk:
        parts = _parts(item)
        if parts is None:
            found.append(item)
        else:
            walk.add(parts)
    return found


def is_value(value: Any) -> bool:
    """Whether something may be a static leaf."""
    return all(map(_is_of_value_class, _parts_at_any_depth(value)))


_SETTLED = (
    *ATOMS, float, complex, range, type, enum.Enum, np.generic, np.dtype, np.ufunc,
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, jax.sharding.Sharding,
    jax.sharding.Mesh,
)  # fmt: skip


def _has_settled_class(value: Any) -> bool:
    cls = type(value)
    own = [names_in(base) for base in bases_of(cls) if base is not object]
    is_compared_by_identity = not any("__eq__" in names or "__hash__" in names for names in own)
    return is_compared_by_identity or any(inherits(cls, base) for base in _SETTLED)


_is_of_settled_class = ClassTable(_has_settled_class).of


def is_settled(value: Any) -> bool:
    """Whether the very same object is certain to be the value that it was."""
    return all(map(_is_of_settled_class, _parts_at_any_depth(value)))


def check_value(leaf: Any, place: Callable[[], str]) -> None:
    """Raises `TypeError` for a leaf that JAX doesn't trace and that is no value."""
    if is_value(leaf):
        return
    cls, where = type(leaf), place()
    name = f"{cls.__module__}.{cls.__qualname__}"
    what, cure = f"an object of {name}, a class that is not registered", _class_cure(cls)
    if isinstance(leaf, types.MethodType):
        what = f"a method bound to {short_repr(leaf.__self__)}"
        cure = (
            "Pass the object itself, of a registered class, and call its method inside; or pass "
            "jax.tree_util.Partial(function, object), which JAX opens."
        )
    elif isinstance(leaf, functools.partial | tuple | frozenset | slice):
        what = f"a {cls.__qualname__} that holds more than values"
        cure = "Pass jax.tree_util.Partial for a partial that holds arrays: JAX opens it."
    elif inherits(cls, weakref.ref) or cls in weakref.ProxyTypes:
        what = "a weak reference: what it leads to would be the caller's object, not an argument"
        cure = "Give a method what it needs of that object as an argument."
    elif hasattr(cls, "__next__") or "view" in name or "dict_" in name or "mapping" in name:
        what = f"a {cls.__qualname__}, an iterator or a view"
        cure = "Pass a list, a tuple or a dict, such as list(params.values())."
    elif cls in (set, bytearray):
        what, cure = f"a {cls.__name__}, which may change in place", "Pass a frozenset or bytes."
    elif isinstance(leaf, np.ndarray):
        what = "an array of objects" if leaf.dtype.hasobject else f"an array of {leaf.dtype}"
        cure = "Pass a list or a tuple."
    raise TypeError(
        f"{where} is {what}\n"
        "  JAX can't trace it, and it can't be compared by what it holds: arrays in it would be "
        f"neither traced nor trained.\n  {cure}"
    )


def _class_cure(cls: type) -> str:
    name = cls.__qualname__.rpartition("<locals>.")[2]
    return (
        "Let the class be a module (class Model(pj.Module), or pydag.register_module("
        f"{name})) or a record (pydag.register_fields({name})). To keep such an object a constant: "
        f"static={name}."
    )


_MOST_OBJECTS = 10_000  # are looked through: a function may close over a whole program


def tracer_in(leaf: Any) -> Any:
    """A tracer to which a static leaf leads, which is gone after the trace; None if there is none.

    Looked for in what functions close over, in the parts of partials, methods and containers, and
    in attributes.
    """
    walk = Walk([] if isinstance(leaf, ATOMS) else [leaf], key=id)
    for item in itertools.islice(walk, _MOST_OBJECTS):
        if isinstance(item, jax.core.Tracer):
            return item
        walk.add(_reachable(item))
    return None


def _reachable(item: Any) -> list[Any]:
    if isinstance(item, type | types.ModuleType | np.ndarray | jax.Array):
        return []
    found = _parts(item) or []
    if isinstance(item, types.FunctionType):
        defaults = [*(item.__defaults__ or ()), *(item.__kwdefaults__ or {}).values()]
        found = [*closed_over(item), *defaults]
    elif isinstance(item, types.MethodType):
        found = [item.__self__, item.__func__]
    elif isinstance(item, dict | types.MappingProxyType):
        found = list(item.values())
    elif isinstance(item, list | set):
        found = list(item)
    return [*found, *getattr(item, "__dict__", {}).values()]


def closed_over(function: types.FunctionType) -> Iterator[Any]:
    """What a function closes over."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it is empty
            yield cell.cell_contents
