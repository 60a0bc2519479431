# SPDX-License-Identifier: Apache-2.0
"""A tree as the lines of a program that builds it."""

from collections import defaultdict, deque
from typing import Any

import specimens as sp
from reference_kinds import MAPPINGS


def program(*built: Any) -> str:
    """Lines that build what a round has built; of what can't be written, its repr."""
    lines: list[str] = []
    names: dict[int, str] = {}

    def write(obj: Any) -> str:
        if id(obj) in names:
            return names[id(obj)]
        if type(obj) in (type(None), bool, int, float, complex, str, bytes):
            return repr(obj)
        names[id(obj)] = "..."  # within itself
        text = _text(obj, write)
        names[id(obj)] = f"x{len(lines)}"
        lines.append(f"{names[id(obj)]} = {text}")
        return names[id(obj)]

    for tree in built:
        write(tree)
    return "\n".join(lines)


def _text(obj: Any, write: Any) -> str:
    cls = type(obj)
    if isinstance(obj, MAPPINGS):
        items = ", ".join(f"{key!r}: {write(value)}" for key, value in obj.items())
        factory = f"{obj.default_factory!r}, " if isinstance(obj, defaultdict) else ""
        return f"{{{items}}}" if cls is dict else f"{cls.__name__}({factory}{{{items}}})"
    if isinstance(obj, list | tuple | deque):
        below = ", ".join(map(write, obj))
        if cls is list:
            return f"[{below}]"
        return f"({below},)" if cls is tuple else f"{cls.__name__}({below})"
    if isinstance(obj, sp.Box) and not isinstance(obj, sp.Tagged):
        return f"sp.{cls.__name__}({', '.join(map(write, obj.children))})"
    values = [
        (name, getattr(obj, name))
        for name in (*getattr(obj, "__dict__", ()), *"abcxy", "units", "mode", "tag")
        if not isinstance(obj, type) and cls.__module__ == "specimens" and hasattr(obj, name)
    ]
    below = ", ".join(f"{name}={write(value)}" for name, value in dict(values).items())
    return f"sp.{cls.__name__}({below})" if cls.__module__ == "specimens" else f"<{obj!r}>"
