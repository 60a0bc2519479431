# SPDX-License-Identifier: Apache-2.0
"""What a callable holds: the object of a bound method, a module that is called, a partial's arrays.

JAX takes all of that for constants of the function. What is compiled would not notice that a model
was trained meanwhile, so `jit` refuses such a callable. The other wrappers let the function close
over what it holds; where JAX would remember a trace by the function, it gets a new one each time.
"""

import functools
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pydag._core as _core
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.messages.naming import name_of
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.jaxinterop.static.option import is_array
from pydag.structure.text import short_repr

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = str(Path(__file__).parents[1])


def anew(fun: F, namespace: str) -> F:
    """The function; if it holds data, another function that calls it, new each time."""
    if not holds_data(fun, namespace):
        return fun

    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return wraps(fun)(call)  # type: ignore[return-value]  # it has the signature of the function


def holds_data(fun: Any, namespace: str) -> bool:
    """Whether a callable holds what could be an argument; never true of a function.

    That is an object of a registered class or a container that holds arrays or is a module; or an
    array. Numbers and text, and containers of them, configure a function.

    Raises:
        TypeError: It can't be called.
    """
    check_function(fun)
    return _held_by(fun, namespace) is not None


def check_function(fun: Any) -> None:
    """Checks that what a wrapper is given can be called.

    Raises:
        TypeError: It can't.
    """
    if not callable(fun):
        raise TypeError(
            f"a function is transformed, and this can't be called: {short_repr(fun)}\n"
            "  Pass the function itself, not what it returned."
        )


def check_holds_nothing(fun: Any, namespace: str) -> None:
    """Checks that what `jit` is given holds no data, nor what a wrapper of ours was made of.

    Raises:
        TypeError: It does.
    """
    while (inner := _wrapped_by_us(fun)) is not None:
        fun = inner
    if holds_data(fun, namespace):
        cls, name = _held_by(fun, namespace) or (type(fun), "")
        raise TypeError(
            f"jit is given {name_of(fun)}, which holds an object of {cls.__qualname__}: to JAX "
            "that is a constant, and a change of it is not noticed\n"
            f"  Pass the object as an argument: pydag.jaxinterop.jit({name})(model, ...)."
        )


def _wrapped_by_us(fun: Any) -> Any:
    code = getattr(fun, "__code__", None) if type(fun) is types.FunctionType else None
    if code is not None:
        is_ours = code.co_filename.startswith(_PACKAGE)
    else:
        is_ours = type(fun).__module__.startswith("pydag.jaxinterop.")
    return getattr(fun, "__wrapped__", None) if is_ours else None


def _held_by(fun: Any, namespace: str) -> tuple[type, str] | None:
    """The class of what a callable holds, and the name of a function that takes it."""
    if isinstance(fun, type | types.FunctionType):
        return None
    if type(fun) is types.MethodType:
        owner = fun.__self__
        return (type(owner), fun.__func__.__qualname__) if _is_data(owner, namespace) else None
    if isinstance(fun, functools.partial):
        for held in (*fun.args, *fun.keywords.values()):
            if _is_data(held, namespace):
                return type(held), name_of(fun.func)
        return _held_by(fun.func, namespace)
    return (type(fun), f"{type(fun).__qualname__}.__call__") if _is_data(fun, namespace) else None


def _is_data(value: Any, namespace: str) -> bool:
    """Whether an object that a callable holds is what an argument would be: no configuration."""
    if is_array(value) or is_ref(value):
        return True
    try:
        one = _core.flatten(value, is_leaf=lambda x: x is not value, namespace=namespace)[1]
        if one.is_leaf() or value is None:
            return False
        if _core.is_module(type(value), namespace):
            return True
        leaves = _core.leaves(value, namespace=namespace)
    except Exception:  # such as a cycle
        return False
    return any(is_array(leaf) or is_ref(leaf) for leaf in leaves)
