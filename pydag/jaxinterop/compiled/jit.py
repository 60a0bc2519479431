# SPDX-License-Identifier: Apache-2.0
"""`jax.jit` for functions of DAGs."""

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

import jax

from pydag.jaxinterop.boundary.held import check_holds_nothing
from pydag.jaxinterop.messages.attributes import set_own, wraps
from pydag.jaxinterop.options import UpdateOptions, check_keywords, with_wrapper_options
from pydag.jaxinterop.prefixes.arguments import Chosen, as_names, as_numbers
from pydag.jaxinterop.static.untraced import Options
from pydag.jaxinterop.updates.choice import chosen_updates
from pydag.typing import Identity, Where

from .compiled_function import CompiledFunction, compiled_for
from .shardings import UNSPECIFIED, Shardings

if TYPE_CHECKING:  # most programs look at no stage
    from .stages import Stage

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Jitted(Protocol[P, R_co]):
    """A compiled function. All of its methods take the arguments of the function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    # As an attribute of a class it is a method.
    @overload
    def __get__(self, instance: None, owner: type, /) -> "Jitted[P, R_co]": ...
    @overload
    def __get__(self, instance: object, owner: type, /) -> Callable[..., R_co]: ...
    def __get__(self, instance: Any, owner: type, /) -> Any: ...

    def trace(self, *args: Any, **kwargs: Any) -> "Stage":
        """Trace it, without compiling; arrays may be given as `jax.ShapeDtypeStruct`s."""

    def lower(self, *args: Any, **kwargs: Any) -> "Stage":
        """Trace it and translate it for the compiler."""

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The result, with `jax.ShapeDtypeStruct`s for arrays."""

    def clear_cache(self) -> None:
        """Forget what was compiled."""


class JitOptions(UpdateOptions, total=False):
    """The keyword arguments of `jit`."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Iterable[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Iterable[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool
    abstracted_axes: Any
    compiler_options: dict[str, Any] | None


class Decorator(Protocol):
    """`jit` with options, before it is given the function."""

    def __call__(self, fun: Callable[P, R], /) -> Jitted[P, R]: ...


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> Jitted[P, R]: ...
@overload
def jit(**options: Unpack[JitOptions]) -> Decorator: ...
@with_wrapper_options
def jit(
    fun: Any = None,
    /,
    *,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
    update_argnums: int | Iterable[int] | None = None,
    update_argnames: str | Iterable[str] | None = None,
    **options: Any,
) -> Any:
    """Compile a function of DAGs; as `jax.jit`, and what is shared stays shared.

    One identity table spans all arguments, another all of the result: inside of the function and
    outside, `a.shared is b.shared` holds. A shared array is passed once, donated once and returned
    once. Leaves that JAX can't trace are static. The function is traced anew when the structure,
    the sharing, a static leaf, or the shape or type of an array is new.

    Args:
        fun: The function. Left out, `jit` returns a decorator.
        in_shardings, out_shardings: One sharding for everything, or tree prefixes: of the tuple of
            positional arguments, and of the result.
        static_argnums, static_argnames: Arguments that are not opened: part of the key, compared
            by type and value.
        donate_argnums, donate_argnames: Arguments whose arrays may be overwritten.
        update_argnums, update_argnames: Not JAX's. Arguments that the function may change: what it
            writes into their objects (arrays in attributes, items of lists and dicts, values of
            Variables) is written into the caller's when the call returns. Arrays alone, all or
            none; containers stay the objects that they are.
        options: All other options that `jax.jit` has.

    Raises:
        SharingError: When called: a donated argument and a kept one hold the same array, or two
            places of one array are given two shardings.
        CycleError: When called: an argument contains itself.
        TypeError: When called: a leaf is neither an array nor hashable; or an object would have to
            be updated that can't be written.
        ValueError: When called: `static` selects nothing, or doesn't fit; or the function changes
            the structure or a static leaf of an argument that is updated (a SharingError, what is
            shared in it).

    >>> w = jax.numpy.ones(2)
    >>> out = jit(lambda model: pydag.dag_map(lambda x: 2 * x, model))({"a": w, "b": w})
    >>> out["a"] is out["b"]
    True
    """
    if fun is None:
        given = locals().copy()
        for name in ("fun", "options"):
            del given[name]
        return functools.partial(jit, **given, **options)
    check_holds_nothing(fun, namespace)
    if options:
        check_keywords(options, jax.jit)
    how = Options.of(namespace, identity, static)
    shardings = Shardings(in_shardings, out_shardings, how)
    arguments: dict[str, Any] = {
        "static_argnums": None if static_argnums is None else as_numbers(static_argnums),
        "static_argnames": None if static_argnames is None else as_names(static_argnames),
        "donate_argnums": None if donate_argnums is None else as_numbers(donate_argnums),
        "donate_argnames": None if donate_argnames is None else as_names(donate_argnames),
    }
    chosen = Chosen.of(fun, arguments["static_argnums"], arguments["static_argnames"])
    donated = Chosen.of(fun, arguments["donate_argnums"], arguments["donate_argnames"])
    updates: UpdateOptions = {
        "update_argnums": update_argnums,
        "update_argnames": update_argnames,
    }
    updated = chosen_updates(fun, updates, chosen)

    check = functools.partial(_check, fun, arguments)
    original, compiled = compiled_for(fun, chosen, donated, shardings, how, options, updated, check)
    return _wrapper(original, compiled)


def _check(fun: Any, arguments: dict[str, Any]) -> None:
    """Raises what JAX raises of arguments that the function doesn't have."""
    if callable(fun) and not any(chosen is not None for chosen in arguments.values()):
        return
    is_named = isinstance(getattr(fun, "__name__", ""), str)  # else JAX doesn't take it
    jax.jit(fun if is_named else wraps(fun)(lambda: None), **arguments)


def _wrapper(fun: Callable[P, R], compiled: CompiledFunction) -> Jitted[P, R]:
    jitted = wraps(fun)(compiled.caller())
    set_own(
        jitted,
        _fun=fun,
        trace=functools.partial(_trace, fun, compiled),
        lower=functools.partial(_lower, fun, compiled),
        eval_shape=functools.partial(_eval_shape, fun, compiled),
        clear_cache=functools.partial(_clear_cache, compiled),
        _cache_size=functools.partial(_cache_size, compiled),
    )
    return cast(Jitted[P, R], jitted)


# The compiled function doesn't own the function, so each of these is given it to hold.


def _trace(
    fun: Callable[..., Any], compiled: CompiledFunction, /, *args: Any, **kwargs: Any
) -> "Stage":
    from .stages import Stage

    return Stage.traced(compiled, args, kwargs)


def _lower(
    fun: Callable[..., Any], compiled: CompiledFunction, /, *args: Any, **kwargs: Any
) -> "Stage":
    lowered: Stage = _trace(fun, compiled, *args, **kwargs).lower()
    return lowered


def _eval_shape(
    fun: Callable[..., Any], compiled: CompiledFunction, /, *args: Any, **kwargs: Any
) -> Any:
    return _trace(fun, compiled, *args, **kwargs).out_info


def _clear_cache(compiled: CompiledFunction) -> None:
    compiled.forget_groups()
    compiled.functions.clear_caches()


def _cache_size(compiled: CompiledFunction) -> int:
    return compiled.functions.cache_size()
