# SPDX-License-Identifier: Apache-2.0
"""Which leaves JAX traces.

*Traced*: what `jax.jit` takes for an array, numbers included. *Static*: all other leaves; and the
numbers and flags that a module holds, which are its configuration: those whose nearest registered
owner, looked for upwards through builtin containers, is a module.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.hijax import AbstractRef

from pydag.jaxinterop.foreign import jax_private
from pydag.registry.classes import bases_of, inherits, names_in
from pydag.registry.tables import ClassTable

_NUMBERS = (bool, int, float, complex, np.bool_, np.number)
KNOWN_DTYPES = frozenset(
    id(np.dtype(name)) for name in ("float32", "float64", "int32", "int64", "uint8", "bool")
)
"""Ids of dtypes that JAX has, too: to hash a dtype takes long, and of these there is one each."""


def _ask_jax(leaf: Any) -> bool:
    try:
        jax.typeof(leaf)
    except TypeError:
        return False
    except Exception:
        return True  # JAX raises an error of its own about such leaves
    return True


# JAX takes every instance of these, or of none of the classes below them, for an array.
_DECIDED_BY_CLASS = (*_NUMBERS, str, bytes, np.generic)


def _ask_of_class(leaf: Any) -> bool | None:
    cls = type(leaf)
    known = set(map(id, jax_private.array_classes))
    if not any(id(base) in known for base in bases_of(cls)):
        return False
    module = names_in(cls).get("__module__")
    is_of_jax = type(module) is str and module.partition(".")[0] in ("jax", "jaxlib")
    decides = is_of_jax or any(inherits(cls, base) for base in _DECIDED_BY_CLASS)
    return _ask_jax(leaf) if decides else None


is_class_traced = ClassTable(_ask_of_class).of
"""Whether JAX takes instances of a class for arrays; None: each has to be asked."""

is_number = ClassTable(lambda leaf: any(inherits(type(leaf), base) for base in _NUMBERS)).of
"""Whether a leaf is a number or a flag of Python's, or a scalar of NumPy's."""


is_array_by_method = ClassTable(
    lambda x: any("__jax_array__" in names_in(base) for base in bases_of(type(x)))
).of
"""Whether a class only says how to make an array of an instance, which JAX doesn't trace."""


def is_traced(leaf: Any) -> bool:
    """Whether JAX takes a leaf for an array."""
    if type(leaf) is np.ndarray:
        return id(leaf.dtype) in KNOWN_DTYPES or _ask_jax(leaf)
    known = is_class_traced(leaf)
    return _ask_jax(leaf) if known is None else known


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array of JAX's or NumPy's, a tracer, or a ref."""
    return isinstance(leaf, jax.Array | np.ndarray | jax.core.Tracer) or jax_private.is_ref(leaf)


def copied(array: Any) -> Any:
    """Another object for the same array: of the same type, weak or not."""
    if isinstance(array, np.ndarray):
        return array.view()
    copy = jnp.copy(array)
    if getattr(array, "weak_type", False):
        copy = jax_private.convert_element_type(copy, copy.dtype, weak_type=True)
    return copy


def is_array_type(type_: Any) -> bool:
    """Whether a type of JAX's is that of arrays or refs, which have a shape and a dtype."""
    return isinstance(type_, jax.core.ShapedArray | AbstractRef)


def is_like_array(leaf: Any) -> bool:
    """Whether a leaf that JAX traces is of such a type, or a number."""
    is_known = isinstance(leaf, jax_private.ArrayImpl | np.ndarray) or is_number(leaf)
    return is_known or is_array_type(jax.typeof(leaf))  # to make a type takes long
