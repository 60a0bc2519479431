# SPDX-License-Identifier: Apache-2.0
"""Functions by their names, `module:qualname`, for files.

A file may name any function. pydag finds only functions that the reader of the file named, and
functions of JAX and NumPy that are known to do no more than compute an array. It imports nothing
for that, and never looks up an attribute of a module by a name in the file.
"""

import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

Function = Callable[..., Any]


def found_under(module: str, path: str) -> Any:
    """The object of a loaded module with this name; None if there is none. It runs no code."""
    found: Any = sys.modules.get(module)
    holder: Any = None
    for part in path.split("."):
        holder = found
        found = vars(found).get(part) if isinstance(found, type | types.ModuleType) else None
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, classmethod) and isinstance(holder, type):
        return found.__get__(None, holder)
    return found


def _known() -> dict[str, frozenset[str]]:
    from .known_functions import KNOWN  # a list that only files need

    return KNOWN


def _known_name(f: Function) -> str | None:
    """The name of a function in the list, which is written whatever its `__name__` is."""
    for module, names in _known().items():
        for name in names:
            if found_under(module, name) is f:
                return f"{module}:{name}"
    return None


def function_name(f: Function) -> str | None:
    """The name by which a function can be found; None if there is none, as of a lambda."""
    known = _known_name(f)
    if known is not None:
        return known
    module = getattr(f, "__module__", None)
    path = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        return None
    found = found_under(module, path)
    is_same = found is f or (isinstance(f, types.MethodType) and found == f)
    return f"{module}:{path}" if is_same else None


class UnaskedFunctionError(ValueError):
    """A file names a function that its reader didn't name."""

    def __init__(self, name: str, where: str = "") -> None:
        self.name = name
        short = name.rpartition(":")[2][:80]
        super().__init__(
            f"{where}the file names a function that isn't one of the array functions that are "
            f"known: {name[:120]}\n"
            f"  If you trust the file with it, name it, functions=[{short}]; or fill a model that "
            "you have built, like=."
        )


class FunctionNames:
    """The functions that a file may use.

    Args:
        asked: The functions that the reader of the file named.

    Raises:
        TypeError: One of them is not a function that can be found by its name.
    """

    def __init__(self, asked: Iterable[Function] = ()) -> None:
        self._asked: dict[str, Function] = {}
        for f in asked:
            name = function_name(f) if callable(f) else None
            if name is None:
                raise TypeError(
                    f"functions= takes functions that can be found by their names, got {f!r}: "
                    "define it in a module, outside of other functions"
                )
            self._asked[name] = f

    def find(self, name: str) -> Function:
        """The function with this name.

        Raises:
            UnaskedFunctionError: The file may not use such a function.
        """
        asked = self._asked.get(name)
        if asked is not None:
            return asked
        module, _, path = name.partition(":")
        found = found_under(module, path) if path in _known().get(module, ()) else None
        if found is None:
            raise UnaskedFunctionError(name)
        function: Function = found
        return function
