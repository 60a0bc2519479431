# SPDX-License-Identifier: Apache-2.0
"""Which leaves a tree is differentiated by, and what a gradient holds at each leaf.

Nothing is differentiated by *state*, nor is it trained, unless `wrt=` names it. In NNX that is what
Variables hold, other than `nnx.Param`s; or such a Variable (of a hijax type, which JAX doesn't
open).

A gradient has the class, the sharing and the configuration of its tree. It has None at leaves that
it isn't by; and where JAX sees configuration as leaves (equinox modules, records, dicts), because
adding a gradient to a model would double a head count.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.flax_private import variable_classes as classes_of_flax
from pydag.registry.class_table import inherits
from pydag.registry.weak_table import WeakTable
from pydag.typing import Dag, Leaf

from .content import Content
from .leaves import is_array_type, is_like_array, is_number

hides_configuration: WeakTable[bool] = WeakTable()
"""Classes in whose instances JAX sees arrays alone, the rest being structure."""

variable_classes: list[tuple[type, type]] = []
"""Pairs of a class of variables and the class of those that are trained."""


def _tangent_dtype(type_: Any) -> Any:
    """The dtype that says whether there is a derivative; None: there is one."""
    if is_array_type(type_):
        return type_.dtype
    try:
        return getattr(type_.to_tangent_aval(), "dtype", None)
    except Exception:  # it has no tangents
        return jax.dtypes.float0


def is_differentiable(leaf: Any, allow_int: bool = False) -> bool:
    """Whether JAX differentiates by an array, a number or another leaf of this type."""
    if type(leaf) is jax_private.ArrayImpl or isinstance(leaf, np.ndarray):
        dtype: Any = leaf.dtype  # type: ignore[attr-defined]  # narrowed to a bare class
    elif is_number(leaf):
        return isinstance(leaf, float | complex | np.inexact) or allow_int
    elif jax_private.is_ref(leaf):
        return False
    else:
        dtype = _tangent_dtype(jax.typeof(leaf))
    if dtype is None or jnp.issubdtype(dtype, np.inexact):
        return True
    is_integer = dtype != jax.dtypes.float0 and not jnp.issubdtype(dtype, jax.dtypes.extended)
    return allow_int and is_integer


def are_no_state(content: Content, leaves: Sequence[Leaf]) -> Sequence[bool]:
    """Which of the traced leaves aren't state. What a Variable holds is at no other place."""
    found = [True] * len(leaves)
    if variable_classes:
        below = _core.leaves_below(content.spec, _is_state)
        found = [not is_below for is_below in content.traced_among(below)]
    classes = classes_of_flax()
    if classes is not None:
        for i, leaf in enumerate(leaves):
            if not is_like_array(leaf) and is_variable(leaf):
                found[i] = isinstance(leaf, classes[1])
    return found


def is_variable(leaf: Leaf) -> bool:
    """Whether a leaf is a Variable of NNX, or a tracer of one."""
    classes = classes_of_flax()
    return classes is not None and isinstance(leaf, classes[0])


def _is_state(cls: type) -> bool:
    return any(
        inherits(cls, variable) and not inherits(cls, trained)
        for variable, trained in variable_classes
    )


def derivative(content: Content, found: Mapping[int, Leaf]) -> Dag:
    """The gradient, given its leaves by their positions among all of the tree's."""
    hidden = _core.leaves_below(content.spec, lambda cls: hides_configuration.get(cls, False))
    leaves: list[Any] = [found.get(i) for i in range(content.spec.num_leaves)]
    for i, value in zip(content.positions, content.values, strict=True):
        if hidden[i]:
            leaves[i] = value
    try:
        return _core.unflatten(content.spec, leaves)
    except Exception as error:
        if None in leaves:
            error.add_note(
                "This is a gradient, in which None stands for what it isn't by, and the class "
                "doesn't keep None when it is built.\n  Register the class by its fields "
                "(pydag.register_fields), so that no constructor runs; or differentiate by all "
                "that it holds (wrt=)."
            )
        raise


def zero_tangent(type_: Any) -> Any:
    """A zero tangent of what is of a type of JAX's."""
    if not is_array_type(type_):
        tangent = type_.to_tangent_aval()
        return zero_tangent(tangent) if is_array_type(tangent) else tangent.vspace_zero()
    if jnp.issubdtype(type_.dtype, np.inexact):
        return jnp.zeros(type_.shape, type_.dtype)
    return np.zeros(type_.shape, jax.dtypes.float0)
