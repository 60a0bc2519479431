# SPDX-License-Identifier: Apache-2.0
"""What JAX leaves out of its errors, as notes: which function it is about, and which leaf."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL, Roots
from pydag.jaxinterop.static.paths import paths_of
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf

Named = Iterable[tuple[str, Leaf]]
"""Leaves with their paths."""


def type_text(leaf: Leaf) -> str:
    """Such as "float32[2,3]"."""
    try:
        aval: Any = jax.typeof(leaf)
    except TypeError:  # a shape, or nothing that JAX knows
        aval = leaf
    if not (hasattr(aval, "dtype") and hasattr(aval, "shape")):
        return type(leaf).__name__
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"


def tangent_text(leaf: Leaf) -> str:
    """The type of its tangents and cotangents."""
    dtype, bracket, shape = type_text(leaf).partition("[")
    is_inexact = jnp.issubdtype(getattr(leaf, "dtype", type(leaf)), np.inexact)
    return f"{dtype if is_inexact else 'float0'}{bracket}{shape}"


def differentiable(holomorphic: bool, allow_int: bool = False, forward: bool = False) -> Any:
    """The kind of dtypes that JAX differentiates by, with these options."""
    if holomorphic:
        return np.complexfloating
    return np.generic if allow_int else np.floating if forward else np.inexact


def blame_gradient(error: TypeError, source: Source, leaves: Named, kind: Any) -> None:
    """Says which function can't be differentiated, and by which leaf.

    Args:
        kind: That of the dtypes that JAX would take.
    """
    if not re.match(jax_private.GRADIENT_REFUSED, str(error)):
        return
    for path, leaf in leaves:
        dtype = getattr(leaf, "dtype", type(leaf))
        if not jnp.issubdtype(dtype, kind):
            error.add_note(
                f"The leaf {path} is of type {dtype}. Pass a float, or select other leaves by wrt=."
            )
            break
    if re.search(r"Output was \(", str(error)):
        error.add_note(
            "If the function returns a pair of its value and something else: has_aux=True."
        )
    error.add_note(f"The function is {source.text}.")


def blame_axes(error: ValueError, source: Source, leaves: Named, axes: Sequence[Any]) -> None:
    """Says which function can't be mapped, and which leaf doesn't have the axis that it should."""
    if not re.match(jax_private.MAP_REFUSED, str(error)):
        return
    for (path, leaf), axis in zip(leaves, axes, strict=True):
        rank = np.ndim(leaf)
        if axis is not None and not -rank <= axis < rank:
            error.add_note(f"{path} is {type_text(leaf)}, and should be mapped over axis {axis}.")
            break
    error.add_note(f"The function is {source.text}.")


def blame_tangent(error: Exception, primals: Named, tangents: Named) -> None:
    """Says which tangent, or cotangent, is of another type than JAX wants for its primal."""
    for (path, primal), (other, tangent) in zip(primals, tangents, strict=True):
        wanted, given = tangent_text(primal), type_text(tangent)
        if wanted != given:
            error.add_note(f"{path} is {type_text(primal)}, and {other} is {given}.")
            return


def blame_sizes(error: ValueError, leaves: Named) -> None:
    """Says which leaves differ along their leading axes, or have none, if that is so."""
    seen: dict[Any, str] = {}
    for path, leaf in leaves:
        shape = np.shape(leaf)
        seen.setdefault(shape[0] if shape else None, path)
    if None in seen:
        error.add_note(f"{seen[None]} has no axis.")
    elif len(seen) > 1:
        texts = [f"{path} has size {size}" for size, path in list(seen.items())[:8]]
        error.add_note(f"Along the leading axis, {', '.join(texts)}.")


@contextmanager
def blaming_value(untraced: Untraced, leaves: Sequence[Leaf], roots: Roots = "") -> Iterator[None]:
    """A context for a function that got these arguments: `blame_value` for what it raises."""
    try:
        yield
    except (TypeError, ValueError) as error:
        from pydag.jaxinterop.messages.plain_functions import advise_plain  # only errors need it

        if isinstance(error, TypeError):
            blame_value(error, untraced, leaves, roots)
        advise_plain(error)
        raise


def blame_value(
    error: TypeError, untraced: Untraced, leaves: Sequence[Leaf], roots: Roots = ""
) -> None:
    """Says what to do about a number or a flag of a record whose value Python code needs.

    Args:
        leaves: The traced ones, of which JAX names one.
        roots: Of their paths. JAX names them so, or after a parameter's name.
    """
    # Not str(error): that runs code of whoever raised it.
    message = error.args[0] if error.args else None
    said = re.search(jax_private.VALUE_WANTED, message) if type(message) is str else None
    if said is None or any(_ADVICE in note for note in getattr(error, "__notes__", ())):
        return
    of_modules = frozenset(_core.module_leaves(untraced.spec)[0])
    places = zip(untraced.traced_positions(), paths_of(untraced, roots), leaves, strict=True)
    accessors = untraced.spec.accessors()
    for position, path, leaf in places:
        part = accessors[position][2:].codify("") if roots == CALL else path  # without the argument
        if part and position not in of_modules and _may_be_number(leaf):
            name = re.escape(path) if roots else rf"\w+{re.escape(path)}"
            if found := re.search(rf"(?:^|, |and )({name})(?:$|,| and )", said[1]):
                error.add_note(
                    f"{found[1]} is data, as all numbers and flags of records and "
                    f"dicts are.\n  {_ADVICE} or say which leaves are static, such as "
                    f"jit(..., static={part.removeprefix('.')!r}). To decide by data, take "
                    "jax.numpy.where, cond or a loop."
                )
                return


_ADVICE = "If it is configuration, let its class be a module (pydag.register_module),"


def _may_be_number(leaf: Leaf) -> bool:
    """Whether a traced leaf may have been one of Python's numbers; a flag looks like an array."""
    aval: Any = jax.typeof(leaf)
    return aval.shape == () and bool(aval.weak_type or aval.dtype == np.bool_)


def blame_write(error: Exception, paths: Sequence[str]) -> None:
    """Says which refs JAX may mean where it refuses that a differentiated value is written."""
    refused = re.search(jax_private.WRITE_REFUSED, str(error))
    if not paths or not (refused or "with vmapped value" in str(error)):
        return
    shown = ", ".join(paths[:8]) + (f" and {len(paths) - 8} more" if len(paths) > 8 else "")
    if not refused:
        error.add_note(
            f"The refs among the arguments: {shown}. jacfwd and hessian map over directions, and "
            "what is mapped can't write into a ref from outside. Take jacrev; or return what shall "
            "be written, with has_aux=True."
        )
        return
    error.add_note(
        f"The refs among the arguments: {shown}. They aren't differentiated by. Write "
        "jax.lax.stop_gradient of the value, or select the ref by wrt=."
    )
