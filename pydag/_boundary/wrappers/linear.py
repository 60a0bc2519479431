# SPDX-License-Identifier: Apache-2.0
"""`vjp`, `jvp` and `linearize`."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from pydag._boundary.content.content import Content, take_apart
from pydag._boundary.content.options import Options
from pydag._boundary.notices.source import Source, named
from pydag.errors import SharingError
from pydag.typing import Identity

from .differentiated import Differentiated, checked_pair, tangents_of


class _Linear:
    """A function that is run once, by `vjp`, `jvp` or `linearize`, for its primals."""

    def __init__(
        self, fun: Callable[..., Any], primals: Sequence[Any], options: Options, has_aux: bool
    ) -> None:
        self._fun, self._source, self._has_aux = fun, Source(fun), has_aux
        self.options = options
        self.call = Differentiated(tuple(range(len(primals))), None, tuple(primals), {}, options)
        self.result: tuple[Content, list[Any]] | None = None

    def flat(self) -> Callable[..., Any]:
        """The function of leaves: the leaves of its result; beside them all else that comes out."""

        def flat(*by: Any) -> Any:
            result, _, contents = self.call.run(self._fun, by, self._source)
            aux = None
            if self._has_aux:
                result, aux = checked_pair(result)
                aux = self.call.pack(aux)
            leaves, content = take_apart(result, self.options, "result", is_result=True)
            self.result = content, leaves
            return leaves, (aux, contents)

        return named(flat, self._source, self.call.paths)

    @property
    def content(self) -> Content:
        """The result without its traced leaves."""
        assert self.result is not None  # the function was run
        return self.result[0]

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


class Pullback:
    """The function backward of `vjp`: of a cotangent of the result. A pytree of JAX."""

    def __init__(self, function: Any, about: _About) -> None:
        self.function, self.about = function, about

    def __call__(self, *cotangents: Any) -> Any:
        if len(cotangents) != 1:
            raise TypeError(f"a pullback takes one cotangent, got {len(cotangents)}")
        about = self.about
        given = about.content.match(cotangents[0], "cotangent", "the cotangent")
        pairs = zip(given, about.types, strict=True)
        return about.call.gradient(self.function([_cotangent(x, *kind) for x, kind in pairs]))


class Pushforward:
    """The function forward of `linearize`: of tangents of the primals. A pytree of JAX."""

    def __init__(self, function: Any, about: _About) -> None:
        self.function, self.about = function, about

    def __call__(self, *tangents: Any) -> Any:
        about = self.about
        given = _tangents(about.call, about.types, tangents)
        return tangents_of(about.content, self.function(*given))


def _cotangent(leaf: Any, shape: Any, dtype: Any) -> Any:
    if not jnp.issubdtype(dtype, np.inexact):
        return np.zeros(shape, jax.dtypes.float0)
    return jnp.zeros(shape, dtype) if leaf is None else leaf


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


def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    namespace: str = "",
    identity: Identity = "all",
) -> Any:
    """`jax.vjp` for functions of DAGs.

    Cotangents have the sharing of the result; what they are pulled back to, that of the primals.
    """
    linear = _Linear(fun, primals, Options(namespace, identity), has_aux)
    out, pull, more = jax.vjp(linear.flat(), *linear.call.by, has_aux=True, reduce_axes=reduce_axes)
    about = _About(linear.content, _types(out), linear.call.without_arrays())
    return linear.finish(out, more, Pullback(pull, about))


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Any:
    """`jax.jvp` for functions of DAGs. None stands for the tangent of what has no derivative."""
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(f"{name} of jvp must be a tuple or a list, got {type(given).__name__}")
    if len(primals) != len(tangents):
        raise TypeError(f"jvp got {len(primals)} primals and {len(tangents)} tangents")
    linear = _Linear(fun, primals, Options(namespace, identity), has_aux)
    out, changes, more = jax.jvp(
        linear.flat(),
        linear.call.by,
        _tangents(linear.call, _types(linear.call.by), tangents),
        has_aux=True,
    )
    return linear.finish(out, more, tangents_of(linear.content, changes))


def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> Any:
    """`jax.linearize` for functions of DAGs."""
    linear = _Linear(fun, primals, Options(namespace, identity), has_aux)
    out, push, more = jax.linearize(linear.flat(), *linear.call.by, has_aux=True)
    about = _About(linear.content, _types(linear.call.by), linear.call.without_arrays())
    return linear.finish(out, more, Pushforward(push, about))
