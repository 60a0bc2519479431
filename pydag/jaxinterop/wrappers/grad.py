# SPDX-License-Identifier: Apache-2.0
"""`grad` and `value_and_grad`."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Unpack, overload

import jax

import pydag._core as _core
from pydag.jaxinterop.compiled.jit import updated_arguments
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, named, wraps
from pydag.jaxinterop.treatments.arguments import check_function, numbers_of
from pydag.jaxinterop.typed import A, GradCall, Gradient, GradOptions, OfFirst, P, R, StaticOptions
from pydag.typing import Where

from .differentiated import Differentiated, value_and_aux


@overload
def value_and_grad(
    fun: OfFirst[A, P, R],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    **options: Unpack[GradCall],
) -> Gradient[A, P, tuple[R, A]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **options: Unpack[GradCall],
) -> Callable[P, tuple[R, Any]]: ...
@with_wrapper_options
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    wrt: Where | None = None,
    update_argnums: Any = None,
    update_argnames: Any = None,
    **options: Unpack[StaticOptions],
) -> Callable[..., Any]:
    """A function that returns the value of `fun` and its gradient; as `jax.value_and_grad`.

    A shared array has one derivative, the sum over its uses. The gradient has the class, the
    sharing and the configuration of its argument; None stands at leaves without a derivative:
    integers, keys, refs, leaves that `wrt` doesn't select. Arguments outside `argnums` are
    constant. An object in both kinds of arguments becomes two objects inside the function. An array
    to which only tuples lead is a separate variable at each place, so `argnums=(0, 1)` of one array
    gives two partial derivatives.

    Args:
        fun: The function. Its result, or the first of the pair with `has_aux`, is one real number.

    Raises:
        TypeError: When called: nothing has a derivative, or the value isn't a real number.
        ValueError: When called: no path matches a pattern of `wrt`.

    >>> w = jnp.float32(3.0)
    >>> loss = lambda model: model["a"] * model["b"]
    >>> value, gradient = value_and_grad(loss)({"a": w, "b": w, "steps": 5})
    >>> float(value), float(gradient["a"]), gradient["a"] is gradient["b"], gradient["steps"]
    (9.0, 6.0, True, None)
    """
    check_function(fun)
    own, source = Options.of(options), Source(fun)
    updated = updated_arguments(fun, update_argnums, update_argnames)
    jax.value_and_grad(fun, reduce_axes=reduce_axes)  # JAX checks what it is given
    if not isinstance(argnums, int):
        argnums = numbers_of(argnums)

    @wraps(fun)
    @jax_private.shortens_tracebacks
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        call = Differentiated(argnums, wrt, args, kwargs, own, allow_int=allow_int)

        def flat(*primals: Any) -> Any:
            result, update, contents = call.run(fun, primals, source, updated)
            packed = call.pack(result)
            packed = _core.make_updated(None, (packed, *update)) if updated else packed
            return value_and_aux(result)[0] if has_aux else result, (packed, contents)

        differentiate = jax.value_and_grad(
            named(flat, source, call.paths),
            tuple(range(len(call.primals))),
            has_aux=True,
            holomorphic=holomorphic,
            allow_int=allow_int,
        )
        try:
            # JAX wants something to differentiate with respect to.
            (_, more), found = differentiate(*call.primals) if call.primals else (flat(), ())
        except TypeError as error:
            if str(error).startswith("Gradient only defined for"):
                error.add_note(f"The function is {source.text}.")
                if "Output was (" in str(error):
                    error.add_note(
                        "Where it returns a pair of its value and something else, say has_aux=True."
                    )
            raise
        gradient = call.gradient(found)
        return call.finish(*more), gradient

    return value_and_gradient


@overload
def grad(
    fun: OfFirst[A, P, Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[GradCall],
) -> Gradient[A, P, A]: ...
@overload
def grad(
    fun: OfFirst[A, P, tuple[Any, R]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[GradCall],
) -> Gradient[A, P, tuple[A, R]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **options: Unpack[GradCall],
) -> Callable[P, Any]: ...
@with_wrapper_options
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[GradOptions],
) -> Callable[..., Any]:
    """A function that returns the gradient of `fun`; as `jax.grad`, and as `value_and_grad` here.

    Args:
        fun: The function. Its result, or the first of the pair with `has_aux`, is one real number.
        has_aux: Whether `fun` returns a pair of a value and something else. Then the result is a
            pair, too.

    >>> w = jnp.float32(3.0)
    >>> model = {"a": w, "b": w, "scale": jnp.float32(2.0)}
    >>> gradient = grad(lambda model: model["a"] * model["b"] * model["scale"], wrt="['a']")(model)
    >>> float(gradient["b"]), gradient["scale"]
    (12.0, None)
    """
    flags: Any = {"holomorphic": holomorphic, "allow_int": allow_int, "reduce_axes": reduce_axes}
    both = value_and_grad(fun, argnums, has_aux, **flags, **options)

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return gradient
