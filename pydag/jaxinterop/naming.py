# SPDX-License-Identifier: Apache-2.0
"""The names of the user's function, file and line in messages of pydag and JAX.

JAX is given functions of pydag. Its messages name the function that `inspect.unwrap` finds,
and names arguments by `inspect.signature` and by the keys of pytrees. So our functions have the
user's name, and a `Source` as what they wrap.
"""

import contextlib
import functools
import inspect
import os
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jax

from pydag.jaxinterop.foreign import jax_private

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE_FOLDER = f"{Path(__file__).parents[1]}{os.sep}"
JAX_FOLDER = f"{Path(jax.__file__).parent}{os.sep}"
jax_private.hide_frames_of(PACKAGE_FOLDER)
jax_private.hide_in_tracebacks(PACKAGE_FOLDER)


def name_of(fun: Callable[..., Any]) -> str:
    """The name by which a function is known in what JAX traced and compiled."""
    name = getattr(fun, "__name__", None)
    if isinstance(name, str):
        return name
    return name_of(fun.func) if isinstance(fun, functools.partial) else type(fun).__name__


class Source:
    """Stands for a user's function where JAX asks which one it is. It doesn't own the function."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.__name__ = name_of(fun)
        self.is_run = True
        qualified = getattr(fun, "__qualname__", None)
        self.__qualname__ = qualified if isinstance(qualified, str) else self.__name__
        inner = inspect.unwrap(fun)
        while isinstance(inner, functools.partial):
            inner = inspect.unwrap(inner.func)
        for holder in (vars(type(inner)).get("__call__"), inner):
            if isinstance(code := getattr(holder, "__code__", None), types.CodeType):
                self.__code__ = code

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"

    @property
    def text(self) -> str:
        """Such as "forward at model.py:12"."""
        code = getattr(self, "__code__", None)
        where = "" if code is None else f" at {code.co_filename}:{code.co_firstlineno}"
        return self.__name__ + where

    def warn(self, text: str, category: type[Warning]) -> None:
        """Warns at the function: the call that is traced may stand anywhere."""
        if (code := getattr(self, "__code__", None)) is None:
            return warn_at_call(text, category)
        return warnings.warn_explicit(text, category, code.co_filename, code.co_firstlineno)


def warn_at_call(text: str, category: type[Warning]) -> None:
    """Warns at the innermost line of the user's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(
        (PACKAGE_FOLDER, JAX_FOLDER)
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


class LeafNames(inspect.Signature):
    """The signature of a function of leaves, by which JAX calls them by their paths.

    They come one by one, or in lists.

    Args:
        paths: Gives the paths; JAX asks when it traces, and keeps it with what it compiled. So it
            must not own the function, which would own what JAX keeps, and stay.
    """

    def __init__(self, paths: Callable[[], Sequence[str]]) -> None:
        super().__init__(_LEAVES)
        self._paths = paths

    def bind(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        paths = self._paths()
        leaves = [x for part in args for x in (part if type(part) is list else [part])]
        by_path = dict(zip(paths, leaves, strict=False))
        if len(paths) == len(leaves) == len(by_path):  # long ones are shortened, and may be one
            return inspect.BoundArguments(self, by_path)
        return super().bind(*args, **kwargs)


_LEAVES = [inspect.Parameter("leaves", inspect.Parameter.VAR_POSITIONAL)]


def named(
    function: F,
    source: Source,
    paths: Callable[[], Sequence[str]] | None = None,
    *,
    parameters: Sequence[str] = (),
) -> F:
    """The function, under the name and from the place that JAX shows.

    Args:
        paths: Of the leaves that it is called with.
        parameters: The names JAX uses for its arguments, where it is called with trees.
    """
    shown: Any = function
    shown.__name__, shown.__qualname__ = source.__name__, source.__qualname__
    # JAX would find the signature of the wrapped function.
    shown.__signature__ = inspect.signature(function) if paths is None else LeafNames(paths)
    if parameters:
        kind = inspect.Parameter.POSITIONAL_ONLY
        shown.__signature__ = inspect.Signature([inspect.Parameter(x, kind) for x in parameters])
    shown.__wrapped__ = source
    return function


def wraps(fun: Callable[..., Any]) -> Callable[[F], F]:
    """As `functools.wraps`, for callables of every class, whose name may be missing or no text."""

    def decorate(wrapper: F) -> F:
        with contextlib.suppress(Exception):  # code of the callable's class may run
            functools.update_wrapper(wrapper, fun)
        shown: Any = wrapper
        shown.__name__ = name_of(fun)
        if not isinstance(getattr(fun, "__qualname__", None), str):
            shown.__qualname__ = shown.__name__
        shown.__wrapped__ = fun
        return wrapper

    return decorate


_WRAPPERS = {  # by the names of JAX's functions that call the user's
    "cache_miss": "jax.jit",
    "vmap_f": "jax.vmap",
    "fun_remat": "jax.checkpoint",
    "grad_f": "jax.grad",
    "grad_f_aux": "jax.grad",
    "value_and_grad_f": "jax.value_and_grad",
    "make_jaxpr_f": "jax.make_jaxpr",
    "eval_shape": "jax.eval_shape",
    "shard_map": "jax.shard_map",
} | {
    name: f"jax.lax.{name}"
    for name in ("scan", "while_loop", "fori_loop", "cond", "switch", "map", "associative_scan")
}


def plain_trace() -> str:
    """Which wrapper of pydag to use instead; "" if a wrapper traces the code, or nothing does.

    The innermost frame of JAX's or of pydag's that called the user's code decides.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        frame = frame.f_back
    found, is_inside = "", False
    while frame is not None and not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        if frame.f_code.co_filename.startswith(JAX_FOLDER):
            is_inside = True
            found = _WRAPPERS.get(frame.f_code.co_name, found)
        elif is_inside and found:
            return (
                f"It is called in a function that plain {found} traces, which unties what is one "
                "object (a plain wrapper around it, such as equinox's, does the same). "
                f"pydag.jaxinterop.{found.rpartition('.')[2]} keeps ties."
            )
        frame = frame.f_back
    return ""
