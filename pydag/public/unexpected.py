# SPDX-License-Identifier: Apache-2.0
"""The error for a keyword that a public function doesn't take.

A definition hands its `**options` to the core, which alone knows that one of them is unknown.
"""

import difflib
import inspect
import sys
import types
from typing import NoReturn


def raise_unexpected(keyword: str) -> NoReturn:
    """Raise the TypeError for a keyword that the core doesn't know, in Python's own words.

    It names the function that was called from outside of the package, and the parameter of it with
    a similar name. The core calls this.
    """
    function = _called_function(sys._getframe(1))
    near = _near(keyword, _parameters(function))
    start = f"{function.__name__}() " if function is not None else ""
    advice = f". Did you mean {near!r}?" if near else ""
    raise TypeError(f"{start}got an unexpected keyword argument {keyword!r}{advice}")


# What is called `where` in one function is `wrt` in another.
_SAME = {"where": "wrt", "wrt": "where", "argnum": "argnums", "only": "where"}


def _near(keyword: str, parameters: list[str]) -> str | None:
    """The parameter that was meant: of the same meaning, one that is longer, or spelt alike."""
    if _SAME.get(keyword) in parameters:
        return _SAME[keyword]
    longer = [name for name in parameters if name.startswith(keyword)]
    near = longer or difflib.get_close_matches(keyword, parameters, n=1, cutoff=0.6)
    return near[0] if near else None


def _called_function(frame: types.FrameType | None) -> types.FunctionType | None:
    """The public function among the callers; None where the core was called directly."""
    found = None
    while frame is not None and _is_of_package(frame):
        name = frame.f_code.co_name
        candidate = frame.f_globals.get(name)
        if callable(candidate) and not name.startswith("_"):
            found = candidate
        frame = frame.f_back
    return found


def _is_of_package(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "pydag"


def _parameters(function: types.FunctionType | None) -> list[str]:
    if function is None:
        return []
    return list(inspect.signature(function).parameters)
