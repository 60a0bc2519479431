# SPDX-License-Identifier: Apache-2.0
"""Which callables hold a model: arrays that could change while a compiled function has them."""

import functools
import types
from collections.abc import Iterable
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.content.leaves import is_array
from pydag.jaxinterop.content.static import is_linear_map
from pydag.jaxinterop.foreign.jax_private import function_in
from pydag.jaxinterop.notices.source import JAX_FOLDER, PACKAGE_FOLDER
from pydag.structure.reached import closed_over
from pydag.structure.walk import Walk


def holder_of_model(fun: Any, namespace: str) -> Any:
    """What holds a model: a function, or the callable within it that does; None if there is none.

    A bound method holds its object, a partial its arguments. A model is an array, an object of a
    registered class, or one that has such a thing in an attribute. It is looked for in all that a
    wrapper names as `__wrapped__`, and in what wrappers of pydag and JAX close over. What any other
    function closes over is JAX's own matter. A pullback holds constants, which never change.
    """
    walk = Walk([fun], key=id)
    for item in walk:
        held: Iterable[Any] = ()
        if isinstance(item, functools.partial):
            if is_linear_map(item):
                continue
            held = [*item.args, *item.keywords.values()]
            walk.add([function_in(item.func), *filter(callable, held)])
        elif isinstance(item, types.MethodType):
            held = [item.__self__]
            walk.add([item.__func__])
        elif isinstance(item, types.FunctionType):
            walk.add(list(filter(callable, closed_over(item))) if _is_of_library(item) else [])
        elif not _is_wrapper(item, namespace):
            held = [item]
        if any(_is_model(x, namespace) for x in held):
            return item
        if not isinstance(item, type) and (inner := getattr(item, "__wrapped__", None)) is not None:
            walk.add([inner])
    return None


def _is_of_library(fun: Any) -> bool:
    if type(fun) is types.FunctionType:
        return fun.__code__.co_filename.startswith((PACKAGE_FOLDER, JAX_FOLDER))
    return type(fun).__module__.partition(".")[0] in ("pydag", "jax", "jaxlib")


def _is_wrapper(item: Any, namespace: str) -> bool:
    """Whether an object, as those of `equinox.filter_grad`, holds no more than a function."""
    if not hasattr(item, "__wrapped__") or _core.is_leaf(item, namespace=namespace):
        return False
    return not any(map(is_array, _core.leaves(item, namespace=namespace)))


def _is_model(held: Any, namespace: str) -> bool:
    """Whether something is a model, an array, or an object that has one in an attribute."""
    walk = Walk([(held, False)], key=lambda pair: (id(pair[0]), pair[1]))
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
