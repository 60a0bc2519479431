# SPDX-License-Identifier: Apache-2.0
"""Types of the functions that `grad` takes and makes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

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
