# SPDX-License-Identifier: Apache-2.0
"""Errors of a walk, in paths that the user knows: `args[0]['w']` for `tree[0][0]['w']`."""

import re
from collections.abc import Sequence

Roots = str | Sequence[str]
"""What the user calls the tree that is walked, or each item of it where it is a tuple."""

CALL: Roots = ("args", "kwargs")

# A path, and not the word: what follows goes on with it, or what precedes says that it is a place.
_PATH = re.compile(r"(?<![\w.'\"\[])tree(?:(?=\[|\.\w)|(?<=\bat tree)\b|(?<=ing tree)$)")
_ITEM = re.compile(_PATH.pattern + r"\[(\d+)\]")


def with_roots(text: str, roots: Roots) -> str:
    """A text of the core's, in which each path begins with what the user knows."""
    if isinstance(roots, str):
        return _PATH.sub(lambda _: roots, text)
    return _ITEM.sub(lambda match: roots[int(match[1])], text)


def say_roots(error: Exception, roots: Roots) -> None:
    """Changes the paths in an error that a walk has raised, or in its note to a user's error."""
    notes = getattr(error, "__notes__", None)
    if notes and notes[-1].startswith("raised while "):
        notes[-1] = with_roots(notes[-1], roots)
    elif error.args and isinstance(error.args[0], str):
        error.args = (with_roots(error.args[0], roots), *error.args[1:])
