# SPDX-License-Identifier: Apache-2.0
"""Nodes that represent the call of a function.

Their children are the arguments; their meta fields are the function and its keyword arguments.
Views show such a node as `f(a, b, axis=1)`, and files store the function by its name.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import pydag._core as _core
from pydag.registry.function_names import function_name
from pydag.registry.tables import WeakTable

from .text import short_repr

CallOptions = tuple[tuple[str, Any], ...]
"""Keyword arguments by name, in the order of the names."""


class Applied(functools.partial[Any]):
    """A partial that is equal to a partial of the same function with the same arguments.

    1, 1.0 and True are different arguments, as for a compiled function.

    A `functools.partial` is equal only to itself, so a model that is built twice would have two
    structures.
    """

    @staticmethod
    def of(f: Callable[..., Any]) -> Callable[..., Any]:
        """The function; a partial becomes one that is compared by its content."""
        if isinstance(f, functools.partial) and type(f) is not Applied:
            return Applied(f.func, *f.args, **f.keywords)
        return f

    def options(self) -> CallOptions:
        """The keyword arguments."""
        return tuple(sorted(self.keywords.items()))

    def _parts(self) -> tuple[Any, ...]:
        return self.func, self.args, self.options()

    def __eq__(self, other: object) -> bool:
        if type(other) is not Applied:
            return NotImplemented
        return _core.is_same_value(self._parts(), other._parts())

    def __hash__(self) -> int:
        hash(self._parts())  # raises for what can't be hashed
        return _core.value_hash(self._parts())


class FunctionName(str):
    """A function from a file, known only by name: `module:qualname`."""

    __slots__ = ()

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Exists only because a partial needs a callable."""
        raise TypeError(f"{self} is known by name alone")


class Call(NamedTuple):
    """The function of a node that represents a call."""

    f: Any
    options: CallOptions

    def text(self, arguments: list[str]) -> str:
        """The whole call as text."""
        shown = [*arguments, *_keywords(self.options)]
        return f"{function_text(self.f)}({', '.join(shown)})"


_classes: WeakTable[bool] = WeakTable()


def means_call(cls: type) -> None:
    """Notes that the nodes of a class of `register_fields` represent calls.

    Its only data field is a tuple of the arguments. Its two meta fields are the function and the
    keyword arguments, as `Options`.
    """
    _classes.set(cls, True)


def is_call_class(cls: object) -> bool:
    """Whether the nodes of a class represent calls."""
    return _classes.get(cls, False)


def call_of(cls: object, meta: Any) -> Call | None:
    """The call that a node represents; None for other nodes.

    Args:
        cls: The class of the node, or its name.
        meta: Names and values of its meta fields.
    """
    if type(meta) is not tuple or len(meta) != 2:
        return None
    (_, f), (_, options) = meta
    if is_call_class(cls):
        return Call(f, options)
    is_from_file = isinstance(cls, str) and is_function_of_file(f) and are_options(options)
    return Call(f, options) if is_from_file else None


def are_options(x: Any) -> bool:
    """Whether a value from a file is `Options`."""
    return type(x) is tuple and all(
        type(pair) is tuple and len(pair) == 2 and type(pair[0]) is str for pair in x
    )


def is_function_of_file(f: Any) -> bool:
    """Whether a function is known only by name, or is a partial of such a function."""
    return type(f.func if type(f) is Applied else f) is FunctionName


def as_in_file(f: Any) -> Any:
    """A function as reading a file gives it; a function without a name is unchanged."""
    if type(f) is Applied:
        return Applied(as_in_file(f.func), *f.args, **f.keywords)
    name = function_name(f) if callable(f) else None
    return f if name is None else FunctionName(name)


def function_text(f: Any) -> str:
    """The name of a function, in short."""
    if isinstance(f, functools.partial):
        shown = [function_text(f.func), *map(short_repr, f.args)]
        return f"partial({', '.join([*shown, *_keywords(tuple(f.keywords.items()))])})"
    name = f.partition(":")[2] if type(f) is FunctionName else getattr(f, "__qualname__", None)
    if not isinstance(name, str):
        name = getattr(f, "__name__", type(f).__qualname__)
    return str(name).rpartition("<locals>.")[2]


def _keywords(options: CallOptions) -> list[str]:
    return [f"{name}={short_repr(value)}" for name, value in options]
