# SPDX-License-Identifier: Apache-2.0
"""The check that a static leaf is a value, and the error: what it is, and a cure for its kind."""

import functools
import types
import weakref
from collections.abc import Callable, ItemsView, KeysView, ValuesView
from typing import Any

import numpy as np

import pydag._core as _core
from pydag.jaxinterop.foreign.equinox_private import is_placeholder
from pydag.registry.classes import inherits
from pydag.structure.reached import Step
from pydag.structure.text import short_repr

from .leaves import is_array, is_array_by_method
from .values import hidden, is_value, refused, tracer_in

_VIEWS = (KeysView, ValuesView, ItemsView, types.MappingProxyType, memoryview)
_IMMUTABLE = 1 << 8  # CPython's flag of classes that can't be changed, as most that C makes


def check_value(
    leaf: Any, place: Callable[[], str], is_selected: bool = False, is_result: bool = False
) -> None:
    """Checks that a leaf which JAX doesn't trace is a value.

    Args:
        is_selected: Whether `static=` selects it. Then it has to be hashable, and to hide no array.
        is_result: Whether a function returned it.
    """
    step = hidden(leaf) if is_selected else refused(leaf)
    can_be = is_result and (is_selected or step is None)
    if can_be and (tracer := tracer_in(leaf)) is not None:
        raise TypeError(
            f"{place()} is {short_repr(leaf)}, and leads to an array that is being traced: "
            f"{short_repr(tracer)}\n  That array is gone when the function returned. Return the "
            "array itself, or a jax.tree_util.Partial of it, which JAX opens."
        )
    if step is not None:
        raise _refusal(leaf, step, place())
    if not is_selected:
        return
    try:
        hash(leaf)
    except TypeError as error:
        what, cure = "", "or make it hashable, such as a tuple for a list"
        if is_array(leaf):
            what, cure = "an array and ", "and leave arrays to JAX"
        raise TypeError(
            f"{place()} is {what}selected by static=, and can't be hashed: {error}\n  What is "
            f"static is part of the key of the compiled function. Select configuration, {cure}."
        ) from None


def _refusal(leaf: Any, step: Step, where: str) -> TypeError:
    """The error about what is no value in a static leaf, or is an array."""
    item, is_held = step.item, step.item is not leaf
    is_array_or_node = is_held and (is_array(item) or not _core.is_leaf(item))
    what, *cures = [short_repr(item)] if is_array_or_node else _of_object(item)
    if is_held:
        holder, cure = _of_holder(leaf)
        what, cures = f"{what}, in {holder}", [*cures, cure]
    return TypeError(
        f"{where}{step.path()} is {what}\n"
        "  JAX can't trace it, and it can't be compared by what it holds: arrays in it would be "
        f"neither traced nor trained.\n  {' '.join(dict.fromkeys(cures))}"
    )


def _of_holder(leaf: Any) -> tuple[str, str]:
    """What a leaf is that leads to something else, and how that is to be passed instead."""
    cls = type(leaf)
    name = _name(cls)
    if isinstance(leaf, functools.partial):
        return "a partial", "Pass jax.tree_util.Partial in the place of the partial: JAX opens it."
    if isinstance(leaf, types.BuiltinMethodType):
        return "a method", f"Pass the {_name(type(leaf.__self__))}, and call its method inside."
    if isinstance(leaf, slice):
        return "a slice", "Pass its start, stop and step as a tuple, and make the slice inside."
    if isinstance(leaf, frozenset):
        return f"a {name}", "Pass a list, a tuple or a dict."
    if isinstance(leaf, tuple):
        cure = f"Make {name} a NamedTuple, or register it (pydag.register_pydag_node)."
        return f"a {name}, a subclass of tuple", cure
    cure = (
        f"Register the class: pydag.register_fields({name}). To keep such objects constants, write "
        "both __eq__ and __hash__ in the class."
    )
    return f"an object of {_full(cls)}, a class that is not registered", cure


def _of_object(item: Any) -> tuple[str, str]:
    """What an object is that may hold arrays out of sight, and how it is to be passed instead."""
    cls = type(item)
    name = _name(cls)
    if isinstance(item, types.MethodType):
        owner = item.__self__
        cure = (
            "Pass the object itself, and call its method inside; or pass jax.tree_util.Partial("
            "function, object), which JAX opens."
        )
        if _core.is_leaf(owner) and not is_array(owner) and not is_value(owner):
            cure = f"{_of_object(owner)[1]} {cure}"
        return f"a method bound to {short_repr(owner)}", cure
    if inherits(cls, weakref.ref) or cls in weakref.ProxyTypes:
        what = "a weak reference: what it leads to would be the caller's object, not an argument"
        return what, "Give a method what it needs of that object as an argument."
    if hasattr(cls, "__next__") or isinstance(item, _VIEWS):
        copy = "bytes(...) or list(...)" if cls is memoryview else "list(...)"
        copy = "dict(...)" if cls is types.MappingProxyType else copy
        return f"a {name}, an iterator or a view", f"Pass a copy of what it shows: {copy}."
    if isinstance(item, set | bytearray):
        copy = "bytes" if isinstance(item, bytearray) else "a frozenset"
        copy = copy if all(map(is_value, item)) else "a list"
        return f"a {name}, which may change in place", f"Pass {copy}."
    if isinstance(item, np.ndarray):
        what = "an array of objects" if item.dtype.hasobject else f"an array of {item.dtype}"
        return what, "Pass a list or a tuple, such as array.tolist()."
    if is_placeholder(cls, "_LeafWrapper"):
        cure = (
            "Write pydag.dag_replace(model, model.layer, new), or pydag.dag_map with where=, in "
            "the place of eqx.tree_at; or give eqx.tree_at a pj.Dag(model)."
        )
        return "what eqx.tree_at puts at a leaf", cure
    what = f"an object of {_full(cls)}, a class that is not registered"
    if cls.__flags__ & _IMMUTABLE:
        cure = (
            "Make it inside, or let the function close over it. To keep it a constant: static=, in "
            "wrappers such as jit."
        )
        return what, cure
    cure = (
        "Let the class be a module (class Model(pj.Module), or pydag.register_module("
        f"{name})) or a record (pydag.register_fields({name})). To keep such an object a constant, "
        f"of which no array is traced: static={name}, in wrappers such as jit."
    )
    if issubclass(cls, dict | list):
        cure = f"Register the class: pydag.register_pydag_node({name}, flatten, unflatten)."
    if is_array_by_method(item):
        cure = f"Pass the array that it stands for: jnp.asarray(...). {cure}"
    return what, cure


def _name(cls: type) -> str:
    return cls.__qualname__.rpartition("<locals>.")[2]


def _full(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
