# SPDX-License-Identifier: Apache-2.0
"""`grad` and `value_and_grad`."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pydag._boundary.compiled.jit import updated_arguments
from pydag._boundary.content.options import Options
from pydag._boundary.foreign import jax_private
from pydag._boundary.notices.source import Source, named, wraps
from pydag.typing import Identity, Where

from .differentiated import Differentiated, checked_pair


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
    wrt: Where | None = None,
    update_argnums: Any = None,
    update_argnames: Any = None,
) -> Callable[..., Any]:
    """`jax.value_and_grad` for functions of DAGs: a shared array has one derivative, the sum.

    The gradient has the class, the sharing and the configuration of its argument. None stands at
    leaves that it isn't by.

    Args:
        wrt: Which leaves of the arguments; by default all that have a derivative.
        static: Which leaves are static, beside those that JAX can't trace.
        update_argnums, update_argnames: Arguments whose leaves the function writes: the new ones
            are written into the caller's objects.
    """
    options = Options(namespace, identity, static)
    source, updated = Source(fun), updated_arguments(fun, update_argnums, update_argnames)
    jax.value_and_grad(fun, reduce_axes=reduce_axes)  # JAX checks what it is given
    if not isinstance(argnums, int):
        argnums = tuple(argnums)

    @wraps(fun)
    @jax_private.shortens_tracebacks
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        call = Differentiated(argnums, wrt, args, kwargs, options, allow_int=allow_int)

        def flat(*by: Any) -> Any:
            result, packed, contents = call.run(fun, by, source, updated)
            return checked_pair(result)[0] if has_aux else result, (packed, contents)

        differentiate = jax.value_and_grad(
            named(flat, source, call.paths),
            tuple(range(len(call.by))),
            has_aux=True,
            holomorphic=holomorphic,
            allow_int=allow_int,
        )
        try:
            (_, (packed, contents)), found = differentiate(*call.by)
        except TypeError as error:
            if str(error).startswith("Gradient only defined for"):
                error.add_note(f"The function is {source.text}.")
            raise
        gradient = call.gradient(found)
        call.write(contents)
        return call.finish(packed), gradient

    return value_and_gradient


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Any,
) -> Callable[..., Any]:
    """`jax.grad` for functions of DAGs: as `value_and_grad`, whose options it has."""
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, **options)

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return gradient
