# SPDX-License-Identifier: Apache-2.0
"""What to write in the place of a path that isn't one, or that doesn't exist."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import optree

import pydag._core as _core
from pydag.structure.listing import Listing
from pydag.structure.near import Near
from pydag.structure.text import short_repr
from pydag.typing import Dag

F = TypeVar("F", bound=Callable[..., Any])


def suggests_paths(function: F) -> F:
    """Lets the errors about paths of a function of a tree and of paths say which path is meant."""

    @functools.wraps(function)
    def checked(tree: Dag, *paths: Any, **options: Any) -> Any:
        _refuse_others(tree, paths, options)
        try:
            return function(tree, *paths, **options)
        except ValueError as error:
            _suggest(error, tree, paths, options)
            raise

    return checked  # type: ignore[return-value]  # it takes and returns the same


def _refuse_others(tree: Dag, paths: tuple[Any, ...], options: dict[str, Any]) -> None:
    for path in paths:
        if type(path) is not tuple and not isinstance(path, optree.PyTreeAccessor):
            raise TypeError(
                f"a path is a tuple of entries or an accessor, got {short_repr(path)}"
                f"{_instead(path, _near(tree, options))}"
            )


def _suggest(error: ValueError, tree: Dag, paths: tuple[Any, ...], options: dict[str, Any]) -> None:
    for path in paths:
        if f"nothing at the path {short_repr(path)}\n" in str(error):
            found = _near(tree, options).path(_text(path))
            if found is not None:
                error.args = (f"{error}\n  Did you mean {short_repr(found)}?",)


def _near(tree: Dag, options: dict[str, Any]) -> Near:
    return Near(Listing.of(_core.structure(tree, **options)))


def _text(entries: Any) -> str:
    return "/".join(map(str, entries))  # also of the keys of JAX


def _instead(path: object, near: Near) -> str:
    items = list(path) if isinstance(path, list | set | dict) else []
    if items and all(isinstance(item, tuple | list | optree.PyTreeAccessor) for item in items):
        return "\n  Give each path as an argument of its own: (tree, *paths)."
    found = near.path(_text(items) if items else str(path))
    if found is not None:
        one = " for one entry" if len(found) == 1 and not items else ""
        return f"\n  Write {short_repr(found)}{one}."
    each = [near.path(str(item)) for item in items]
    if items and None not in each:
        return f"\n  Give each path as an argument of its own: {', '.join(map(short_repr, each))}."
    there = near.paths()
    return f"\n  Write a tuple, such as {' or '.join(map(short_repr, there))}." if there else ""
