# SPDX-License-Identifier: Apache-2.0
"""Compiled functions and loop bodies are kept as long as the user's function lives.

So wrapping a function again compiles nothing again. Nothing that is kept owns the function.
"""

import functools
import threading
import types
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from pydag.jaxinterop.notices.source import name_of
from pydag.registry.weak_table import WeakTable

M = TypeVar("M")

_made: WeakTable[dict[Hashable, Any]] = WeakTable()
_lock = threading.RLock()


class _Weakly:
    """A weak reference to a function; a strong one after unpickling."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        make: Any = weakref.WeakMethod if type(fun) is types.MethodType else weakref.ref
        self._reference, self._name = make(fun), name_of(fun)

    def __call__(self) -> Any:
        fun = self._reference()
        if fun is None:
            raise ReferenceError(
                f"the function {self._name!r} is gone, and JAX calls it now: keep the function "
                "that jit returned as long as it may be called"
            )
        return fun

    def __reduce__(self) -> tuple[Any, ...]:
        return _always, (self(),)


def _always(fun: Callable[..., Any]) -> Callable[[], Any]:
    """A strong reference to a function, of the same form."""
    return lambda: fun


def kept_for(fun: Callable[..., Any], key: Hashable, make: Callable[[Callable[[], Any]], M]) -> M:
    """What was made for a function and a key; `make` gets a function that returns `fun`."""
    owner: Any = fun
    if type(fun) is types.MethodType:  # it ends with the object
        owner, key = fun.__self__, (weakref.ref(fun.__func__), key)
    elif type(fun) not in (types.FunctionType, functools.partial):
        return make(_always(fun))
    with _lock:
        table = _made.get(owner, None)
        if table is None:
            table = {}
            try:
                _made.set(owner, table)
            except TypeError:  # there are no weak references to it
                return make(_always(fun))
        if key not in table:
            table[key] = make(_Weakly(fun))
        found: M = table[key]
    return found
