# SPDX-License-Identifier: Apache-2.0
"""Static values: what may stand at a leaf that JAX doesn't trace, and which of them are equal.

A static value is part of what a function is compiled for. So it must be a *value*: something that
is compared by what it is. An object that holds arrays out of sight would be compiled in as a
constant, neither traced nor trained. The core compares them: `is_same_value`.
"""

import enum
import itertools
import types
import weakref
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pydag.jaxinterop.foreign.equinox_private import is_placeholder
from pydag.registry.classes import bases_of, has_generated_methods, inherits, names_in
from pydag.registry.tables import ClassTable
from pydag.structure.reached import ATOMS, Parts, Step, attributes, closed_over, parts, steps

from .leaves import is_array, is_array_by_method

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


def _defined_for(value: Any) -> list[Any]:
    return [names_in(base) for base in bases_of(type(value)) if base is not object]


def _kind_of_class(value: Any) -> bool | None:
    cls = type(value)
    if any(inherits(cls, base) for base in _NO_VALUES):
        return False
    if any(inherits(cls, base) for base in _VALUES):
        return True
    module = names_in(cls).get("__module__")
    if isinstance(module, str) and module.partition(".")[0] in ("jax", "jaxlib"):
        return True  # meshes, shardings, devices, what `jax.jit` made
    if is_placeholder(cls, "SharedNode"):
        return True
    own = _defined_for(value)
    hashes = next((names["__hash__"] for names in own if "__hash__" in names), None)
    is_compared = hashes is not None and any("__eq__" in names for names in own)
    if not is_compared or is_array_by_method(value):
        return False
    return None if has_generated_methods(cls) else True


_is_value_by_class = ClassTable(_kind_of_class).of
"""Whether instances of a class are values; None if that is for their fields to say."""


def _inside(value: Any) -> Parts | None:
    return attributes(value) if _is_value_by_class(value) is None else parts(value)


def _reachable(item: Any) -> Parts | None:
    """Whatever an object leads to."""
    if isinstance(item, type | types.ModuleType | np.ndarray | jax.Array):
        return None
    found = parts(item) or ()
    if isinstance(item, types.FunctionType):
        found = [("", x) for x in (*closed_over(item), item.__defaults__, item.__kwdefaults__)]
    elif isinstance(item, types.MethodType):
        found = [(".__self__", item.__self__), ("", item.__func__)]
    elif isinstance(item, types.MappingProxyType | set):
        found = [("", list(item.values() if isinstance(item, types.MappingProxyType) else item))]
    return [*found, *attributes(item)]


def hidden(
    value: Any, namespace: str | None = None, parts_of: Callable[[Any], Parts | None] = _inside
) -> Step | None:
    """The first array to which an instance leads whose class doesn't say itself that it is a value.

    Args:
        namespace: That in which nodes are opened that lead to instances; None if they aren't.
    """
    for step in steps(Step(value), parts, namespace):
        if _is_value_by_class(step.item) is None:
            for inner in steps(step, parts_of, namespace or ""):
                if is_array(inner.item) or is_array_by_method(inner.item):
                    return inner
    return None


def refused(value: Any) -> Step | None:
    """What is no value in a static leaf; None if there is nothing."""
    for step in steps(Step(value), parts):
        if _is_value_by_class(step.item) is False and parts(step.item) is None:
            return step
    return hidden(value, parts_of=lambda x: (parts if _is_value_by_class(x) else _reachable)(x))


def array_beside(value: Any, namespace: str) -> Step | None:
    """The first array in something that isn't traced: in its nodes, parts and fields."""
    found = steps(Step(value), _inside, namespace)
    return next((step for step in found if is_array(step.item)), None)


def array_in_static(value: Any, namespace: str) -> Step | None:
    """The first array in a static argument: in its nodes, or hidden."""
    nodes = steps(Step(value), lambda _: None, namespace)
    found = next((x for x in nodes if x.before is not None and is_array(x.item)), None)
    return hidden(value, namespace) if found is None else found


def is_value(value: Any) -> bool:
    """Whether something may be a static leaf."""
    return refused(value) is None


_SETTLED = (*_VALUES, jax.sharding.Sharding, jax.sharding.Mesh)


_is_of_settled_class = ClassTable(
    lambda x: (
        any(inherits(type(x), base) for base in _SETTLED)
        or not any("__eq__" in names or "__hash__" in names for names in _defined_for(x))
    )
).of


def is_settled(value: Any) -> bool:
    """Whether an object is immutable: the same object is the same value."""
    found = steps(Step(value), parts)
    return all(parts(step.item) is not None or _is_of_settled_class(step.item) for step in found)


_MOST_OBJECTS = 10_000  # are looked through: a function may close over a whole program


def tracer_in(leaf: Any) -> Any:
    """A tracer to which a static leaf leads, which is gone after the trace; None if there is none.

    Looked for in what functions close over, in the parts of partials, methods and containers, and
    in attributes.
    """
    found = itertools.islice(steps(Step(leaf), _reachable, ""), _MOST_OBJECTS)
    return next((step.item for step in found if isinstance(step.item, jax.core.Tracer)), None)
