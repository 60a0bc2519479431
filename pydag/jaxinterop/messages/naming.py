# SPDX-License-Identifier: Apache-2.0
"""How JAX's messages come to speak of the user's code.

JAX is given functions of ours. It says which function it is about by what `inspect.unwrap` finds:
a name, a file and a line. It names arguments by a function's `inspect.signature` and by the keys of
pytrees. So our functions have the user's name and, as what they wrap, a stand-in with the user's
place; their arguments are pytrees whose keys are texts such as `args[0]['w']`. All of this is
written down when a function is wrapped or traced: a call does nothing for it.
"""

import functools
import inspect
import os
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydag.jaxinterop.foreign import jax_private

F = TypeVar("F", bound=Callable[..., Any])

# JAX says where a value was made, or a function called, by the innermost frame that is the user's.
_PYDAG = f"{Path(__file__).parents[2]}{os.sep}"
jax_private.hide_frames_of(_PYDAG)
jax_private.hide_in_tracebacks(_PYDAG)


def name_of(fun: Callable[..., Any]) -> str:
    """The name by which a function is known in what JAX traced and compiled."""
    name = getattr(fun, "__name__", None)
    if isinstance(name, str):
        return name
    return name_of(fun.func) if isinstance(fun, functools.partial) else type(fun).__name__


class Source:
    """Stands for a user's function where JAX asks which one it is. It doesn't own the function.

    A function without Python code, such as a builtin, is shown by its name alone.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.__name__ = name_of(fun)
        qualified = getattr(fun, "__qualname__", None)
        self.__qualname__ = qualified if isinstance(qualified, str) else self.__name__
        inner = inspect.unwrap(fun)
        while isinstance(inner, functools.partial):
            inner = inspect.unwrap(inner.func)
        for holder in (inner, vars(type(inner)).get("__call__")):
            code = getattr(holder, "__code__", None)
            if isinstance(code, types.CodeType):
                self.__code__ = code
                break

    def __repr__(self) -> str:
        return f"<built-in function {self.__name__}>"

    @property
    def text(self) -> str:
        """Such as "forward at model.py:12"."""
        code = getattr(self, "__code__", None)
        where = "" if code is None else f" at {code.co_filename}:{code.co_firstlineno}"
        return self.__name__ + where

    def warn(self, text: str, category: type[Warning]) -> None:
        """Warns at the function: the call that is traced may stand anywhere."""
        code = getattr(self, "__code__", None)
        if code is None:
            warnings.warn(text, category, stacklevel=3)
        else:
            warnings.warn_explicit(text, category, code.co_filename, code.co_firstlineno)


class _Unnamed(inspect.Parameter):
    """A parameter that adds nothing to the keys of the pytree that is passed for it."""

    @property
    def name(self) -> str:
        return ""


# Of a function of one pytree, whose keys say all that there is to say.
ONE_TREE = inspect.Signature([_Unnamed("tree", inspect.Parameter.POSITIONAL_ONLY)])

# Of a function of one pytree, a tuple: the user's positional arguments.
ARGUMENT_TUPLE = inspect.Signature([inspect.Parameter("args", inspect.Parameter.POSITIONAL_ONLY)])


class _Unbound(inspect.Signature):
    """A signature that doesn't tell which argument is which: JAX counts them, as `args[0]`."""

    def bind(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        raise TypeError("the arguments have no names")


# Of a function that takes the positional arguments one by one, and nothing else.
COUNTED = _Unbound()

# The same for a function that JAX calls by what the signature makes of the arguments.
ARGUMENTS = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])


def named(function: F, source: Source, signature: inspect.Signature = ONE_TREE) -> F:
    """The function, under the name and from the place that JAX shall show.

    Args:
        signature: Has the names that JAX shall show for the arguments.
    """
    function.__name__, function.__qualname__ = source.__name__, source.__qualname__
    shown: Any = function
    shown.__wrapped__, shown.__signature__ = source, signature
    return function


def signature_like(fun: Callable[..., Any], *names: str) -> inspect.Signature:
    """Positional parameters, named as those of a user's function where it has as many.

    Args:
        names: By default.
    """
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    found = [parameter.name for parameter in parameters if parameter.kind in kinds]
    chosen = found[: len(names)] if len(found) >= len(names) else names
    return inspect.Signature([inspect.Parameter(name, kinds[0]) for name in chosen])
