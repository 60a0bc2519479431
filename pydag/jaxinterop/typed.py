# SPDX-License-Identifier: Apache-2.0
"""What type checkers know of functions that wrappers take and return."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypedDict, TypeVar, overload

from pydag.typing import Identity, Where

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    A = TypeVarWithDefault("A", bound=Any, default=Any)  # so that a lambda may do anything with it
    T = TypeVarWithDefault("T", default=Any)
else:
    A, T = TypeVar("A"), TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
A_contra = TypeVar("A_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class OfFirst(Protocol[A_contra, P, R_co]):
    """A function of at least one argument; by `Concatenate`, mypy would refuse some lambdas."""

    def __call__(self, first: A_contra, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Gradient(OfFirst[A_contra, P, R_co], Protocol[A_contra, P, R_co]):
    """The same, and as an attribute of a class it is a method."""

    @overload
    def __get__(self, instance: None, owner: type, /) -> "Gradient[A_contra, P, R_co]": ...
    @overload
    def __get__(self, instance: object, owner: type, /) -> Callable[P, R_co]: ...
    def __get__(self, instance: Any, owner: type, /) -> Any: ...


class Jitted(Protocol[P, R_co]):
    """A compiled function. All of its methods take the arguments of the function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, instance: None, owner: type, /) -> "Jitted[P, R_co]": ...
    @overload
    def __get__(self, instance: object, owner: type, /) -> Callable[..., R_co]: ...
    def __get__(self, instance: Any, owner: type, /) -> Any: ...
    def trace(self, *args: Any, **kwargs: Any) -> Any: ...
    def lower(self, *args: Any, **kwargs: Any) -> Any: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...


class Jit(Protocol):
    """`jit` with options, before it is given the function."""

    def __call__(self, fun: Callable[P, R], /) -> Jitted[P, R]: ...


class OfPrimals(Protocol):
    """`vjp` and `linearize`."""

    @overload
    def __call__(
        self, fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False, **options: Any
    ) -> tuple[R, Callable[..., Any]]: ...
    @overload
    def __call__(
        self, fun: Callable[..., Any], *primals: Any, has_aux: bool, **options: Any
    ) -> tuple[Any, ...]: ...


class Jvp(Protocol):
    """`jvp`."""

    @overload
    def __call__(
        self,
        fun: Callable[..., R],
        primals: Sequence[Any],
        tangents: Sequence[Any],
        has_aux: Literal[False] = False,
        **options: Any,
    ) -> tuple[R, R]: ...
    @overload
    def __call__(
        self,
        fun: Callable[..., Any],
        primals: Sequence[Any],
        tangents: Sequence[Any],
        has_aux: bool,
        **options: Any,
    ) -> tuple[Any, ...]: ...


def of_primals(wrapper: Callable[..., Any]) -> OfPrimals:
    """The wrapper, for a type checker."""
    return wrapper


def as_jvp(wrapper: Callable[..., Any]) -> Jvp:
    """The wrapper, for a type checker."""
    return wrapper


class SharingOptions(TypedDict, total=False):
    """The options that all wrappers have beside JAX's."""

    namespace: str
    identity: Identity


class StaticOptions(SharingOptions, total=False):
    """The options of most wrappers beside JAX's."""

    static: Where | None


class WrtOptions(StaticOptions, total=False):
    """The options of derivatives beside JAX's."""

    wrt: Where | None


class UpdateOptions(StaticOptions, total=False):
    """The options that `jit` and `grad` have beside JAX's."""

    update_argnums: Any
    update_argnames: Any


class JitOptions(UpdateOptions, total=False):
    """The options of `jit`."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: Any
    static_argnames: Any
    donate_argnums: Any
    donate_argnames: Any
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool
    abstracted_axes: Any
    compiler_options: dict[str, Any] | None


class GradOptions(WrtOptions, UpdateOptions, total=False):
    """The options of `grad` beside JAX's."""


class GradCall(GradOptions, total=False):
    """All options of `grad`, where types depend on none of them."""

    holomorphic: bool
    allow_int: bool
    reduce_axes: Sequence[Any]
