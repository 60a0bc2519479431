# SPDX-License-Identifier: Apache-2.0
"""What is made for a function lives as long as the function does, not as long as a wrapper.

JAX remembers what it traced and compiled by the identity of the function that it was given. It is
given ours, which calls the user's; so for one function there must be one of ours, or wrapping the
function again would compile it again.
"""

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


def cached_for_function(fun: F, key: Hashable, make: Callable[[Callable[[], F]], M]) -> tuple[F, M]:
    """What was made for a function, and the function that it calls: `fun`, or an equal one.

    Whoever uses what was made owns the function that is returned with it.

    Args:
        make: Is given a function that gives `fun`; what it makes must not own `fun` itself.
    """
    try:
        known = _made.setdefault(fun, {})
        owner, made = known.get(key, (None, None))
    except TypeError:  # not hashable, or not weakly referenceable
        return fun, make(lambda: fun)
    original = owner() if owner is not None else None
    if original is not None:
        return original, made
    reference, name = weakref.ref(fun), name_of(fun)

    def get() -> F:
        function = reference()
        if function is None:
            raise ReferenceError(
                f"the function {name!r} is gone, and JAX calls it now. What JAX may call later, "
                "such as a callback, has to be kept by whoever passes it on."
            )
        return function

    made = make(get)
    known[key] = reference, made
    return fun, made


# What owns the function it was made for: it lives as long as somebody has it, such as JAX.
_owning: "weakref.WeakKeyDictionary[Any, weakref.WeakValueDictionary[Hashable, Any]]" = (
    weakref.WeakKeyDictionary()
)


def owning_function(fun: F, key: Hashable, make: Callable[[Callable[[], F]], M]) -> M:
    """What was made for a function, and owns it: for what JAX may call when nobody else has it.

    There is one for a function as long as anybody holds it; the function doesn't.
    """
    try:
        known = _owning.setdefault(fun, weakref.WeakValueDictionary())
        made: M | None = known.get(key)
        if made is None:
            made = known[key] = make(lambda: fun)
    except TypeError:  # not hashable, or not weakly referenceable
        return make(lambda: fun)
    return made


def frozen(value: Any) -> Hashable:
    """Options as part of a key: containers opened, values by type."""
    if isinstance(value, dict):
        return tuple(sorted((name, frozen(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return type(value), tuple(map(frozen, value))
    return type(value), value
