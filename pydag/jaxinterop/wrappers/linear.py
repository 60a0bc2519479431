# SPDX-License-Identifier: Apache-2.0
"""`vjp`, `jvp` and `linearize`: linear maps of trees, made of those of leaves."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.leaves import is_array_type, is_traced
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.selection import zero_tangent
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.typed import SharingOptions, as_jvp, of_primals
from pydag.structure.text import short_repr

from .differentiated import Differentiated, as_type_error, tangents_of


class LinearMap:
    """A function of leaves that JAX made; `call` calls it with the user's trees. JAX's pytree."""

    def __init__(self, function: Any, call: Callable[..., Any]) -> None:
        self.function, self.call = function, call

    def __call__(self, *trees: Any) -> Any:
        return self.call(self.function, *trees)

    def __getattr__(self, name: str) -> Any:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_") and hasattr(vars(self).get("function"), name):
            text += (
                "\n  JAX's own attributes describe flat leaves. For trees, give a function of a "
                "pj.Dag to jax.vjp or jax.linearize: "
                f"jax.vjp(lambda dag: f(dag.tree), dag)[1].{name}"
            )
        raise AttributeError(text, name=name, obj=self)


jax.tree_util.register_pytree_node(
    LinearMap, lambda x: ((x.function,), x.call), lambda call, parts: LinearMap(*parts, call)
)


def _call(primals: Sequence[Any], given: SharingOptions) -> Differentiated:
    numbers, args = tuple(range(len(primals))), tuple(primals)
    return Differentiated(numbers, None, args, {}, Options.of(given), may_be_none=True)


def _finish(
    call: Differentiated, content: Content, out: Any, more: Any, linear: Any, has_aux: bool
) -> Any:
    """The return value of a wrapper: the result, its linear map or tangent, and perhaps the aux."""
    aux = call.finish(*more)
    result = content.build(out)
    return (result, linear, aux) if has_aux else (result, linear)


def _tangents_of_result(content: Content, found: Sequence[Any]) -> Any:
    return tangents_of(content, [None if jax_private.is_ref(x) else x for x in found])


@contextlib.contextmanager
def _filled(
    what: str, given: Sequence[Any], types: Sequence[Any], paths: Sequence[str]
) -> Iterator[list[Any]]:
    """Tangents or cotangents, zeros for None. An error of JAX's tells which has a wrong type."""
    leaves = list(given)
    for i, type_ in enumerate(types):
        has_none = is_array_type(type_) and not jnp.issubdtype(type_.dtype, np.inexact)
        leaves[i] = zero_tangent(type_) if leaves[i] is None or has_none else leaves[i]
    try:
        yield leaves
    except (TypeError, ValueError) as error:
        for leaf, type_, path in zip(leaves, types, paths, strict=True):
            if not (is_array_type(type_) and is_traced(leaf) and is_array_type(jax.typeof(leaf))):
                continue
            found, wanted = (jnp.shape(leaf), jnp.result_type(leaf)), (type_.shape, type_.dtype)
            if found[1] != jax.dtypes.float0 and found != wanted:
                text = f"{type_.dtype}{list(type_.shape)}"
                error.add_note(f"The {what} of {path} is {short_repr(leaf)}, and must be {text}.")
                break
        raise


def _tangents(
    call: Differentiated, types: Sequence[Any], tangents: Sequence[Any]
) -> contextlib.AbstractContextManager[list[Any]]:
    """The tangents of the leaves of the primals; see `_filled`."""
    with as_type_error("primals and tangents must have the same tree structure\n"):
        given = call.match(tangents, "tangents")
    return _filled("tangent", given, types, call.paths())


@of_primals
@with_wrapper_options
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[SharingOptions],
) -> Any:
    """The value of a function of DAGs, and its pullback; as `jax.vjp`.

    The pullback takes a cotangent of the value's structure, with one leaf for each shared object,
    and gives a tuple of cotangents, structured and shared as the primals are: that of a shared
    array is the sum over its uses. None stands for integers, text and whatever else has no
    derivative.

    Returns:
        `(value, pullback)`; with `has_aux`, `(value, pullback, aux)`. The pullback is a pytree, so
        a compiled function may return it.

    Raises:
        SharingError: The pullback is given two cotangents for one object.

    >>> w = jnp.float32(3.0)
    >>> value, pullback = vjp(lambda p: p["a"] * p["b"], {"a": w, "b": w})
    >>> [cotangent] = pullback(jnp.float32(1.0))
    >>> float(cotangent["a"]), cotangent["a"] is cotangent["b"]
    (6.0, True)
    """
    call = _call(primals, options)
    flat, kept = call.of_leaves(fun, has_aux)
    out, pull, more = jax.vjp(flat, *call.primals, has_aux=True, reduce_axes=reduce_axes)
    [content], types, shape = kept, list(map(jax.typeof, out)), call.without_arrays()

    def pullback(pull: Any, *cotangents: Any) -> Any:
        if len(cotangents) != 1:
            raise TypeError(f"a pullback takes one cotangent, got {len(cotangents)}")
        given = content.match(cotangents[0], "cotangent", "the cotangent")
        with _filled("cotangent", given, types, content.paths("result")) as leaves:
            found = pull(leaves)
        return shape.gradient(found)

    return _finish(call, content, out, more, LinearMap(pull, pullback), has_aux)


@as_jvp
@with_wrapper_options
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    **options: Unpack[SharingOptions],
) -> Any:
    """The value of a function of DAGs, and its tangent; as `jax.jvp`.

    Args:
        primals: A tuple or list of its arguments.
        tangents: Structured as the primals are. They may share more, and must not share less. None
            stands for zero, and where there is no derivative.

    Raises:
        SharingError: Tangents have two different leaves where the primals have one object.
        TypeError: Tangents are structured differently from the primals, or of other types.

    >>> w, one = jnp.float32(3.0), jnp.float32(1.0)
    >>> value, tangent = jvp(lambda p: p[0] * p[1], ([w, w],), ([one, one],))
    >>> float(value), float(tangent)
    (9.0, 6.0)
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(f"{name} of jvp must be a tuple or a list, got {type(given).__name__}")
    if (type(primals), len(primals)) != (type(tangents), len(tangents)):
        raise TypeError(
            f"jvp got a {type(primals).__name__} of {len(primals)} primals and a "
            f"{type(tangents).__name__} of {len(tangents)} tangents"
        )
    call = _call(primals, options)
    flat, kept = call.of_leaves(fun, has_aux)
    with _tangents(call, list(map(jax.typeof, call.primals)), tangents) as given:
        out, changes, more = jax.jvp(flat, call.primals, given, has_aux=True)
    [content] = kept
    return _finish(call, content, out, more, _tangents_of_result(content, changes), has_aux)


@of_primals
@with_wrapper_options
def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, **options: Unpack[SharingOptions]
) -> Any:
    """The value of a function of DAGs, and its linear map at the primals; as `jax.linearize`.

    Returns:
        `(value, map)`; with `has_aux`, `(value, map, aux)`. The map takes a tangent for each
        primal, as `jvp` does, and is a pytree.

    >>> w, one = jnp.float32(3.0), jnp.float32(1.0)
    >>> value, pushforward = linearize(lambda p: p[0] * p[1], [w, w])
    >>> float(pushforward([one, one]))
    6.0
    """
    call = _call(primals, options)
    flat, kept = call.of_leaves(fun, has_aux)
    out, push, more = jax.linearize(flat, *call.primals, has_aux=True)
    [content], types, shape = kept, list(map(jax.typeof, call.primals)), call.without_arrays()

    def pushforward(push: Any, *tangents: Any) -> Any:
        with _tangents(shape, types, tangents) as given:
            found = push(*given)
        return _tangents_of_result(content, found)

    return _finish(call, content, out, more, LinearMap(push, pushforward), has_aux)
