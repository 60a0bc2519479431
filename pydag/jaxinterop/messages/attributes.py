# SPDX-License-Identifier: Apache-2.0
"""What a wrapper takes over of the function that it wraps: all of its attributes."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .naming import name_of

W = TypeVar("W", bound=Callable[..., Any])

# A wrapper's attribute that lists its own attributes, which no other wrapper takes over. A gradient
# of a compiled function, say, has no `lower`, which would lower the function itself.
_OWN = "__pydag_own__"
_HIDDEN = (_OWN, "__pydag_kept__")


def wraps(fun: Callable[..., Any]) -> Callable[[W], W]:
    """As `functools.wraps`, for callables of every class.

    They may lack a name, or have one that is no text.
    """

    def wrapped(wrapper: W) -> W:
        with contextlib.suppress(Exception):  # code of the callable's class may run
            own = fun.__dict__.get(_OWN, ())
            for name, value in list(fun.__dict__.items()):
                if name not in own and name not in _HIDDEN:
                    wrapper.__dict__[name] = value
        for name in functools.WRAPPER_ASSIGNMENTS:
            with contextlib.suppress(Exception):
                setattr(wrapper, name, getattr(fun, name))
        shown: Any = wrapper
        shown.__name__ = name_of(fun)
        if not isinstance(getattr(fun, "__qualname__", None), str):
            shown.__qualname__ = shown.__name__
        shown.__wrapped__ = fun
        return wrapper

    return wrapped


def set_own(wrapper: Callable[..., Any], **attributes: Any) -> None:
    """Gives a wrapper attributes of its own."""
    wrapper.__dict__.update(attributes)
    wrapper.__dict__[_OWN] = frozenset(attributes)
