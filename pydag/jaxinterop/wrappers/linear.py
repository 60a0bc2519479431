# SPDX-License-Identifier: Apache-2.0
"""`vjp`, `jvp` and `linearize`."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from pydag.errors import SharingError
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_traced
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source, named
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.typed import as_jvp, of_primals
from pydag.structure.text import short_repr
from pydag.typing import Identity

from .differentiated import Differentiated, checked_pair, tangents_of


class _Linear:
    """A function that is run once, by `vjp`, `jvp` or `linearize`, for its primals."""

    def __init__(
        self, fun: Callable[..., Any], primals: Sequence[Any], options: Options, has_aux: bool
    ) -> None:
        self._fun, self._source, self._has_aux = fun, Source(fun), has_aux
        self.options = options
        numbers, args = tuple(range(len(primals))), tuple(primals)
        self.call = Differentiated(numbers, None, args, {}, options, may_be_none=True)
        self._contents: list[Content] = []

    def flat(self) -> Callable[..., Any]:
        """The function of leaves: the leaves of its result; beside them all else that comes out."""

        def flat(*by: Any) -> Any:
            result, _, contents = self.call.run(self._fun, by, self._source)
            aux = None
            if self._has_aux:
                result, aux = checked_pair(result)
                aux = self.call.pack(aux)
            leaves, content = take_apart(result, self.options, "result", is_result=True)
            self._contents[:] = [content]
            return leaves, (aux, contents)

        return named(flat, self._source, self.call.paths)

    @property
    def content(self) -> Content:
        """The result without its traced leaves."""
        return self._contents[0]

    def finish(self, out: Sequence[Any], more: tuple[Any, Any], made: Any) -> Any:
        """What the wrapper returns: the result, what was made beside it, and perhaps the aux."""
        aux, contents = more
        self.call.write(contents)
        result = self.content.build(out)
        return (result, made, self.call.finish(aux)) if self._has_aux else (result, made)


class _About:
    """What a pullback or a pushforward is, beside its arrays."""

    def __init__(self, content: Content, types: Sequence[Any], call: Differentiated) -> None:
        self.content, self.types, self.call = content, types, call


class _LinearMap:
    """A function that JAX made, for the user's trees."""

    def __init__(self, function: Any, about: _About) -> None:
        self.function, self.about = function, about

    def __getattr__(self, name: str) -> Any:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_") and hasattr(vars(self).get("function"), name):
            text += (
                "\n  What JAX's has is about the leaves. For trees, give a function of a pj.Dag to "
                f"jax.vjp or jax.linearize: jax.vjp(lambda dag: f(dag.tree), dag)[1].{name}"
            )
        raise AttributeError(text, name=name, obj=self)


class Pullback(_LinearMap):
    """The function backward of `vjp`: of a cotangent of the result. A pytree of JAX."""

    def __call__(self, *cotangents: Any) -> Any:
        if len(cotangents) != 1:
            raise TypeError(f"a pullback takes one cotangent, got {len(cotangents)}")
        about = self.about
        given = about.content.match(cotangents[0], "cotangent", "the cotangent")
        pairs = zip(given, about.types, strict=True)
        leaves = [_cotangent(x, *kind) for x, kind in pairs]
        with _named("cotangent", leaves, about.types, about.content.paths("result")):
            found = self.function(leaves)
        return about.call.gradient(found)


class Pushforward(_LinearMap):
    """The function forward of `linearize`: of tangents of the primals. A pytree of JAX."""

    def __call__(self, *tangents: Any) -> Any:
        about = self.about
        given = _tangents(about.call, about.types, tangents)
        with _named("tangent", given, about.types, about.call.paths()):
            found = self.function(*given)
        return _tangents_of_result(about.content, found)


def _tangents_of_result(content: Content, found: Sequence[Any]) -> Any:
    return tangents_of(content, [None if jax_private.is_ref(x) else x for x in found])


def _cotangent(leaf: Any, shape: Any, dtype: Any) -> Any:
    if not jnp.issubdtype(dtype, np.inexact):
        return np.zeros(shape, jax.dtypes.float0)
    return jnp.zeros(shape, dtype) if leaf is None else leaf


@contextlib.contextmanager
def _named(
    what: str, leaves: Sequence[Any], types: Sequence[Any], paths: Sequence[str]
) -> Iterator[None]:
    """Says in what JAX raises which tangent has another type than what it is for."""
    try:
        yield
    except (TypeError, ValueError) as error:
        for leaf, (shape, dtype), path in zip(leaves, types, paths, strict=True):
            has_type = is_traced(leaf) and jnp.result_type(leaf) != jax.dtypes.float0
            if has_type and (jnp.shape(leaf), jnp.result_type(leaf)) != (shape, dtype):
                wanted = f"{dtype}{list(shape)}"
                error.add_note(f"The {what} of {path} is {short_repr(leaf)}, and must be {wanted}.")
                break
        raise


def _types(leaves: Sequence[Any]) -> list[Any]:
    return [(jnp.shape(x), jnp.result_type(x)) for x in leaves]


def _tangents(call: Differentiated, types: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The tangents of the leaves that a call is by; zeros for None."""
    try:
        found = call.match(tangents, "tangents")
    except SharingError:
        raise
    except ValueError as error:
        raise TypeError(
            f"primals and tangents must have the same tree structure\n{error}"
        ) from None
    return [_cotangent(x, *kind) for x, kind in zip(found, types, strict=True)]


tree_util.register_pytree_node(
    Pullback,
    lambda pullback: ((pullback.function,), pullback.about),
    lambda about, children: Pullback(children[0], about),
)
tree_util.register_pytree_node(
    Pushforward,
    lambda pushforward: ((pushforward.function,), pushforward.about),
    lambda about, children: Pushforward(children[0], about),
)


@of_primals
@with_wrapper_options
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    namespace: str = "",
    identity: Identity = "all",
) -> Any:
    """The value of a function of DAGs, and its pullback; as `jax.vjp`.

    The pullback takes a cotangent of the value's structure, with one leaf for each shared object,
    and gives a tuple of cotangents, structured and shared as the primals are: that of a shared
    array is the sum over its uses. None stands for integers, text and whatever else has no
    derivative.

    Args:
        fun: The function.
        primals: Its arguments.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        reduce_axes: As in JAX.

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
    linear = _Linear(fun, primals, Options(namespace, identity), has_aux)
    out, pull, more = jax.vjp(linear.flat(), *linear.call.by, has_aux=True, reduce_axes=reduce_axes)
    about = _About(linear.content, _types(out), linear.call.without_arrays())
    return linear.finish(out, more, Pullback(pull, about))


@as_jvp
@with_wrapper_options
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Any:
    """The value of a function of DAGs, and its tangent; as `jax.jvp`.

    Args:
        fun: The function.
        primals: A tuple or list of its arguments.
        tangents: Structured as the primals are. They may share more, and must not share less. None
            stands for zero, and where there is no derivative.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.

    Raises:
        SharingError: Tangents have two different leaves where the primals have one object.
        TypeError: Tangents are structured in another way than the primals, or of other types.

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
    linear = _Linear(fun, primals, Options(namespace, identity), has_aux)
    types = _types(linear.call.by)
    given = _tangents(linear.call, types, tangents)
    with _named("tangent", given, types, linear.call.paths()):
        out, changes, more = jax.jvp(linear.flat(), linear.call.by, given, has_aux=True)
    return linear.finish(out, more, _tangents_of_result(linear.content, changes))


@of_primals
@with_wrapper_options
def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> Any:
    """The value of a function of DAGs, and its linear map at the primals; as `jax.linearize`.

    Args:
        fun: The function.
        primals: Its arguments.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.

    Returns:
        `(value, map)`; with `has_aux`, `(value, map, aux)`. The map takes a tangent for each
        primal, as `jvp` does, and is a pytree.

    >>> w, one = jnp.float32(3.0), jnp.float32(1.0)
    >>> value, pushforward = linearize(lambda p: p[0] * p[1], [w, w])
    >>> float(pushforward([one, one]))
    6.0
    """
    linear = _Linear(fun, primals, Options(namespace, identity), has_aux)
    out, push, more = jax.linearize(linear.flat(), *linear.call.by, has_aux=True)
    about = _About(linear.content, _types(linear.call.by), linear.call.without_arrays())
    return linear.finish(out, more, Pushforward(push, about))
