# SPDX-License-Identifier: Apache-2.0
"""Compiled functions and loop bodies are kept as long as the user's function lives.

So wrapping a function again compiles nothing again. Nothing that is kept owns the function. For a
function that holds a model, arrays that could change meanwhile, nothing is kept.
"""

import functools
import threading
import types
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, TypeVar, cast

import pydag._core as _core
from pydag.jaxinterop.content.leaves import is_array
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.static import is_linear_map
from pydag.jaxinterop.foreign.jax_private import function_in
from pydag.jaxinterop.naming import JAX_FOLDER, PACKAGE_FOLDER, name_of
from pydag.registry.tables import WeakTable
from pydag.structure.listing import Walk
from pydag.structure.reached import closed_over

M = TypeVar("M")

_kept_by_owner: WeakTable[dict[Hashable, Any]] = WeakTable()
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
        table = _kept_by_owner.get(owner, None)
        if table is None:
            table = {}
            try:
                _kept_by_owner.set(owner, table)
            except TypeError:  # there are no weak references to it
                return make(_always(fun))
        if key not in table:
            table[key] = make(_Weakly(fun))
        return cast(M, table[key])


def kept_function(
    fun: Callable[..., Any],
    key: Hashable,
    refs: Collection[Any],
    options: Options,
    make: Callable[[Callable[[], Any]], M],
) -> M:
    """What `make` makes, given what returns the function: one object for calls of one structure.

    JAX remembers traces by the function. So a function that closes over the refs of the call or
    holds a model, and a callable of any other class, gets a new object for each call.
    """
    is_function = type(fun) is types.FunctionType
    if is_function and not refs and holder_of_model(fun, options.namespace) is None:
        return kept_for(fun, (key, options.key()), make)
    return make(lambda: fun)


def holder_of_model(fun: Any, namespace: str) -> Any:
    """What holds a model: a function, or the callable within it that does; None if there is none.

    A bound method holds its object, a partial its arguments. A model is an array, an object of a
    registered class, or one that has such a thing in an attribute. It is looked for in all that a
    wrapper names as `__wrapped__`, and in what wrappers of pydag and JAX close over. What any other
    function closes over is JAX's own matter. A pullback holds constants, which never change.
    """
    walk = Walk([fun], key=id)
    for item in walk:
        contents: Iterable[Any] = ()
        if isinstance(item, functools.partial):
            if is_linear_map(item):
                continue
            contents = [*item.args, *item.keywords.values()]
            walk.add([function_in(item.func), *filter(callable, contents)])
        elif isinstance(item, types.MethodType):
            contents = [item.__self__]
            walk.add([item.__func__])
        elif isinstance(item, types.FunctionType):
            walk.add(list(filter(callable, closed_over(item))) if _is_of_library(item) else [])
        elif not hasattr(item, "__wrapped__") or _core.is_leaf(item, namespace=namespace):
            contents = [item]
        elif any(map(is_array, _core.leaves(item, namespace=namespace))):
            contents = [item]  # unlike those of `equinox.filter_grad`, which hold a function alone
        if any(_is_model(x, namespace) for x in contents):
            return item
        if not isinstance(item, type) and (inner := getattr(item, "__wrapped__", None)) is not None:
            walk.add([inner])
    return None


def _is_of_library(fun: Any) -> bool:
    if type(fun) is types.FunctionType:
        return fun.__code__.co_filename.startswith((PACKAGE_FOLDER, JAX_FOLDER))
    return type(fun).__module__.partition(".")[0] in ("pydag", "jax", "jaxlib")


def _is_model(thing: Any, namespace: str) -> bool:
    """Whether something is a model, an array, or an object that has one in an attribute."""
    walk = Walk([(thing, False)], key=lambda pair: (id(pair[0]), pair[1]))
    for item, is_attribute in walk:
        if isinstance(item, list | tuple | dict):
            items = item.values() if isinstance(item, dict) else item
            walk.add([(x, is_attribute) for x in items])
        elif is_array(item):
            return True
        elif isinstance(item, type | types.ModuleType):
            continue
        elif not _core.is_leaf(item, namespace=namespace):
            if item is not None and not (_is_of_library(item) and callable(item)):
                return True  # what is of a library and callable is such as a pullback
        elif not is_attribute and not _is_of_library(item):  # such as an optimizer, with its `wrt=`
            walk.add([(x, True) for x in getattr(item, "__dict__", {}).values()])
    return False
