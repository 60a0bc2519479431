# SPDX-License-Identifier: Apache-2.0
"""`jax.grad` and `jax.value_and_grad` for functions of DAGs."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, Unpack, overload

import jax

from pydag.jaxinterop.boundary.argnums import Argnums
from pydag.jaxinterop.boundary.differentiated import DifferentiatedCall
from pydag.jaxinterop.boundary.held import check_function
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.messages.naming import Source, named
from pydag.jaxinterop.notices.blame import blame_gradient, differentiable
from pydag.jaxinterop.notices.parallel_copies import tell_divided
from pydag.jaxinterop.notices.running import RunningCall, check_tied
from pydag.jaxinterop.options import GradOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import dag_of
from pydag.jaxinterop.refs.ref_calls import blame_rule
from pydag.jaxinterop.static.untraced import Options
from pydag.jaxinterop.updates.choice import NOTHING, chosen_updates
from pydag.jaxinterop.updates.update import finished
from pydag.typing import Leaf

from .checks import pair

# The first argument. The gradient has its type, though None stands where nothing is derived.
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    A = TypeVarWithDefault("A", bound=Any, default=Any)  # so that a lambda may do anything with it
else:
    A = TypeVar("A")
Aux = TypeVar("Aux")
P = ParamSpec("P")
R = TypeVar("R")
A_contra = TypeVar("A_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Differentiated(Protocol[A_contra, P, R_co]):
    """A function of at least one argument; by `Concatenate`, mypy would refuse some lambdas."""

    def __call__(self, first: A_contra, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Gradient(Protocol[A_contra, P, R_co]):
    """A function that is called as the function is, and returns its gradient by the first."""

    def __call__(self, first: A_contra, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    # As an attribute of a class it is a method.
    @overload
    def __get__(self, instance: None, owner: type, /) -> "Gradient[A_contra, P, R_co]": ...
    @overload
    def __get__(self, instance: object, owner: type, /) -> Callable[P, R_co]: ...
    def __get__(self, instance: Any, owner: type, /) -> Any: ...


@overload
def value_and_grad(
    fun: Differentiated[A, P, R],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[GradOptions],
) -> Gradient[A, P, tuple[R, A]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Iterable[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[GradOptions],
) -> Callable[P, tuple[R, Any]]: ...
@with_wrapper_options
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Iterable[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[GradOptions],
) -> Callable[P, tuple[R, Any]]:
    """A function that returns the value of `fun` and its gradient; as `jax.value_and_grad`.

    The gradient of a shared array is the sum over all its uses, and stands, shared, wherever the
    array stood, in one argument or in several. A derivative is by its argument: what another one
    holds is constant, also where it is the same object (`loss(params, target)` with
    `target = params`); inside, the two are different objects. Arguments that are arrays themselves
    are variables of their own: `grad(f, argnums=(0, 1))(x, x)` is two partial derivatives. Leaves
    that aren't differentiated by, such as integers, random keys, text, functions, numbers of
    modules and what `wrt` leaves out, are passed through; the gradient has None there. So a map
    over the gradient sees derivatives alone.

    Args:
        fun: The function; it returns a number.
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on;
            the two may share.
        holomorphic: Whether `fun` is promised to be so, for complex numbers.
        allow_int: Whether integers may be differentiated by.
        reduce_axes: As in the releases of JAX that have it.

    Raises:
        SharingError: When called: an array that is differentiated by is also in an argument that
            isn't, and there are arguments to update.
        TypeError: When called: there is nothing to differentiate by.
        ValueError: When called: no path matches a pattern, or a prefix is of another form.

    >>> w = jnp.float32(3.0)
    >>> value, gradient = value_and_grad(lambda p: p["a"] * p["b"])({"a": w, "b": w})
    >>> float(gradient["a"]), gradient["a"] is gradient["b"]
    (6.0, True)
    """
    check_function(fun)
    how, wrt = Options.given(options, GradOptions), options.get("wrt")
    by, source = Argnums.of(argnums), Source(fun)
    jax_options: dict[str, Any] = {"holomorphic": holomorphic, "allow_int": allow_int}
    if reduce_axes:
        jax_options["reduce_axes"] = reduce_axes
    jax.value_and_grad(fun, **jax_options)  # checks what can be checked without arguments

    updated = chosen_updates(fun, options)

    @wraps(fun)
    def value_and_gradient(*args: P.args, **kwargs: P.kwargs) -> tuple[R, Any]:
        check_tied(args, "grad")
        call = DifferentiatedCall(
            by, wrt, args, kwargs, how, allow_int, has_updates=updated != NOTHING
        )
        tell_divided(fun, wrt, call.untraced.spec, call.divided)

        def flat(leaves: Sequence[Leaf], others: Sequence[Leaf]) -> tuple[Any, Any]:
            result, update, table = call.run(fun, leaves, others, updated)
            value, dag = pair(result)[0] if has_aux else result, dag_of(result, how)
            dag = table.hide(dag)
            returned = dag if update.plan is None else update.beside(dag)
            return value, (returned, call.contents(table))

        differentiate = jax.value_and_grad(named(flat, source), 0, has_aux=True, **jax_options)
        try:
            with RunningCall(args, kwargs, how):
                (_, (result, contents)), gradients = differentiate(call.by, call.others)
        except TypeError as error:
            kind = differentiable(holomorphic, allow_int)
            blame_gradient(error, source, call.by_with_paths(), kind)
            raise
        except (AssertionError, ValueError) as error:
            blame_rule(error, call.ref_paths)
            raise
        # The gradient first: where something fails, nothing is written.
        gradient = call.gradient(gradients)
        call.write(contents)
        return finished(result, (args, kwargs), call.table.tree), gradient

    return value_and_gradient


@overload
def grad(
    fun: Differentiated[A, P, Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[GradOptions],
) -> Gradient[A, P, A]: ...
@overload
def grad(
    fun: Differentiated[A, P, tuple[Any, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[GradOptions],
) -> Gradient[A, P, tuple[A, Aux]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Iterable[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[GradOptions],
) -> Callable[P, Any]: ...
@with_wrapper_options
def grad(
    fun: Callable[P, Any],
    argnums: int | Iterable[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    **options: Unpack[GradOptions],
) -> Callable[P, Any]:
    """A function that returns the gradient of `fun`; as `jax.grad`, and as `value_and_grad` here.

    Args:
        fun: The function; it returns a number.
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on;
            the two may share.
        holomorphic: Whether `fun` is promised to be so, for complex numbers.
        allow_int: Whether integers may be differentiated by.
        reduce_axes: As in the releases of JAX that have it.

    Returns:
        With `has_aux`, a function that returns the gradient and what `fun` passed on.

    >>> w = jnp.float32(3.0)
    >>> gradient = grad(lambda p: p["a"] * p["b"])({"a": w, "b": w})
    >>> float(gradient["a"]), gradient["a"] is gradient["b"]
    (6.0, True)
    """
    given = argnums, has_aux, holomorphic, allow_int, reduce_axes
    both = value_and_grad(fun, *given, **options)

    @wraps(fun)
    def gradient(*args: P.args, **kwargs: P.kwargs) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return gradient
