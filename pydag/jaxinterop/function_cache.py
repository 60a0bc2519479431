# SPDX-License-Identifier: Apache-2.0
"""What is made for a function lives as long as the function does, not as long as a wrapper.

JAX remembers what it traced and compiled by the identity of the function that it was given. It is
given ours, which calls the user's; so for one function there must be one of ours, or wrapping the
function again would compile it again.
"""

import functools
import types
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from pydag.jaxinterop.messages.naming import name_of

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M")

# Nothing that is kept here owns the function.
_made: "weakref.WeakKeyDictionary[Any, dict[Hashable, tuple[Any, Any]]]" = (
    weakref.WeakKeyDictionary()
)


class _Weakly:
    """Gives a function that it doesn't own; where it was unpickled, it does."""

    def __init__(self, reference: Callable[[], Any], name: str) -> None:
        self._reference, self._name = reference, name

    def __call__(self) -> Any:
        function = self._reference()
        if function is None:
            raise ReferenceError(
                f"the function {self._name!r} is gone, and JAX calls it now. What JAX may call "
                "later, such as a callback, has to be kept by whoever passes it on."
            )
        return function

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial, (_same, self())


def _same(function: F) -> F:
    return function


def cached_for_function(fun: F, key: Hashable, make: Callable[[Callable[[], F]], M]) -> tuple[F, M]:
    """A function equal to `fun`, and what was made for it, which calls that function.

    The caller must keep the returned function alive while it uses what was made.

    Args:
        make: Gets a function that returns `fun`; what it makes must not own `fun` itself.
    """
    try:
        known = _made.setdefault(fun, {})
        owner, made = known.get(key, (None, None))
    except TypeError:  # not hashable, or not weakly referenceable
        return fun, make(lambda: fun)
    original = owner() if owner is not None else None
    if original is not None:
        return original, made
    reference = weakref.ref(fun)
    entry = reference, make(_Weakly(reference, name_of(fun)))
    if owner is not None:
        known.pop(key, None)  # of a function that is gone
    kept, made = known.setdefault(key, entry)  # another thread may have been first
    original = kept()
    return (fun, entry[1]) if original is None else (original, made)


class _Kept(dict[Hashable, Any]):
    """What was made for a function, by key, as an attribute of the function."""

    def __init__(self, fun: Any = None) -> None:
        super().__init__()
        self.fun = None if fun is None else weakref.ref(fun)

    def is_of(self, fun: Any) -> bool:
        return self.fun is not None and self.fun() is fun

    def __reduce__(self) -> tuple[Any, ...]:
        return _Kept, ()  # a copy of the function, made elsewhere, has nothing yet


def _twin(fun: Any) -> Any:
    """Another function with the same code, defaults and closure."""
    twin = types.FunctionType(
        fun.__code__, fun.__globals__, fun.__name__, fun.__defaults__, fun.__closure__
    )
    twin.__kwdefaults__ = fun.__kwdefaults__
    return twin


def kept_with_function(fun: F, key: Hashable, make: Callable[[Callable[[], F]], M]) -> M:
    """What was made for a function, which JAX may call when no reference to the function is left.

    The function owns what was made, so that there is one as long as the function lives. What was
    made owns a twin of the function, and not the function itself: the two would only be collected
    together, by the garbage collector, and so would the arrays that the function closes over. For a
    callable that isn't a plain function nothing can be kept, and it is made anew each time.
    """
    if type(fun) is not types.FunctionType:
        return make(lambda: fun)
    known = fun.__dict__.get("__pydag_kept__")
    if not isinstance(known, _Kept) or not known.is_of(fun):  # functools.wraps copies it
        known = fun.__dict__["__pydag_kept__"] = _Kept(fun)
    if key not in known:
        twin: F = _twin(fun)
        known.setdefault(key, make(lambda: twin))  # another thread may have been first
    made: M = known[key]
    return made


def frozen(value: Any) -> Hashable:
    """Options as part of a key: containers opened, values by type."""
    if isinstance(value, dict):
        return tuple(sorted((name, frozen(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return type(value), tuple(map(frozen, value))
    return type(value), value
