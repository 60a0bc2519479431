# SPDX-License-Identifier: Apache-2.0
"""`jacfwd`, `jacrev`, `hessian`: in the place of each leaf of the result stands a gradient."""

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import jax

from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.selection import derivative
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import wraps
from pydag.jaxinterop.treatments.arguments import check_function
from pydag.jaxinterop.typed import P, WrtOptions

from .differentiated import Differentiated


def _jacobian(
    transformation: Any,
    fun: Callable[P, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    options: WrtOptions,
    block: Callable[[Differentiated, Sequence[Any]], Any] = Differentiated.gradient,
    **jax_options: Any,
) -> Callable[P, Any]:
    """A function that gives the result of `fun`, with what `block` makes in place of each leaf."""
    check_function(fun)
    given: dict[str, Any] = {**options}
    wrt, own = given.pop("wrt", None), Options.of(given)

    @wraps(fun)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        allow_int = jax_options.get("allow_int", False)
        call = Differentiated(argnums, wrt, args, kwargs, own, allow_int=allow_int)
        flat, kept = call.of_leaves(fun, has_aux)
        numbers = tuple(range(len(call.primals)))
        differentiate = transformation(flat, numbers, has_aux=True, **jax_options)
        rows, more = differentiate(*call.primals) if call.primals else flat()
        rows = rows if call.primals else [()] * len(rows)
        aux = call.finish(*more)
        [content] = kept
        blocks = (block(call, row) for row in rows)
        found = derivative(content, dict(zip(content.traced_positions(), blocks, strict=True)))
        return (found, aux) if has_aux else found

    return differentiated


@with_wrapper_options
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    **options: Unpack[WrtOptions],
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `fun`, row by row; as `jax.jacrev`, see `jacfwd`.

    Args:
        fun: The function. In the place of each leaf of its result stands a gradient.

    Raises:
        TypeError: When called: nothing has a derivative.

    >>> w = jnp.array([1.0, 2.0])
    >>> jacrev(lambda p: p["a"] * p["b"])({"a": w, "b": w})["b"].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    flags: Any = {"holomorphic": holomorphic, "allow_int": allow_int}
    return _jacobian(jax.jacrev, fun, argnums, has_aux, options, **flags)


jacobian = jacrev


@with_wrapper_options
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    **options: Unpack[WrtOptions],
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `fun`, column by column; as `jax.jacfwd`.

    A shared array has one derivative, the sum over its uses, as in `value_and_grad`.

    Args:
        fun: The function. In the place of each leaf of its result stands a gradient.

    >>> w = jnp.array([1.0, 2.0])
    >>> jacobian = jacfwd(lambda p: p["a"] * p["b"])({"a": w, "b": w})
    >>> jacobian["a"].tolist(), jacobian["a"] is jacobian["b"]
    ([[2.0, 0.0], [0.0, 4.0]], True)
    """
    return _jacobian(jax.jacfwd, fun, argnums, has_aux, options, holomorphic=holomorphic)


@with_wrapper_options
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    **options: Unpack[WrtOptions],
) -> Callable[P, Any]:
    """A function that returns the Hessian of `fun`; as `jax.hessian`.

    Args:
        fun: The function. In the place of each leaf of its result stands a gradient, in whose
            leaves' places stand gradients.

    >>> w = jnp.float32(3.0)
    >>> second = hessian(lambda p: p["a"] * p["b"])({"a": w, "b": w})
    >>> float(second["a"]["b"]), second["a"] is second["b"]
    (2.0, True)
    """

    def block(call: Differentiated, rows: Sequence[Any]) -> Any:
        return call.gradient(list(map(call.gradient, rows)))

    return _jacobian(jax.hessian, fun, argnums, has_aux, options, block, holomorphic=holomorphic)
