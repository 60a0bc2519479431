# SPDX-License-Identifier: Apache-2.0
"""Errors of a walk, in paths that the user knows: `args[0]['w']` for `tree[0][0]['w']`."""

import re

import optree

Roots = str | tuple[str, ...]
"""What the user calls the tree that is walked, or each item of it where it is a tuple."""

CALL: Roots = ("args", "kwargs")

HELD = "__held__"
"""The keyword by which a function is given what a callable holds, such as a method's object."""

_HELD = f"kwargs['{HELD}']"

LONGEST = 600  # characters of a path

# A path, and not the word: what follows goes on with it, or what precedes says that it is a place.
_PATH = re.compile(r"(?<![\w.'\"\[])tree(?:(?=\[|\.\w)|(?<=\bat tree)\b|(?<=ing tree)$)")
_ITEM = re.compile(_PATH.pattern + r"\[(\d+)\]")


def with_roots(text: str, roots: Roots) -> str:
    """A text of the core's, in which each path begins with what the user knows."""
    if isinstance(roots, str):
        return _PATH.sub(lambda _: roots, text)
    return _ITEM.sub(lambda match: roots[int(match[1])], text).replace(_HELD, "self")


def place_text(accessor: optree.PyTreeAccessor, roots: Roots) -> str:
    """A path as a Python expression, such as `args[0]['layers'][3].w`."""
    if isinstance(roots, str):
        return shortened(accessor.codify(roots))
    text = accessor[1:].codify(roots[accessor[0].entry])
    return shortened(text.replace(_HELD, "self"))


def shortened(text: str, limit: int = LONGEST) -> str:
    """A text of readable length: the middle of a very long one is left out."""
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"


def say_roots(error: Exception, roots: Roots) -> None:
    """Changes the paths in an error that a walk has raised, or in its note to a user's error."""
    notes = getattr(error, "__notes__", None)
    if notes and notes[-1].startswith("raised while "):
        notes[-1] = with_roots(notes[-1], roots)
    elif error.args and isinstance(error.args[0], str):
        error.args = (with_roots(error.args[0], roots), *error.args[1:])
