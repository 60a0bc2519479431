# SPDX-License-Identifier: Apache-2.0
"""Errors for arguments in a wrong place, or left out."""

from typing import Any

import pydag._core as _core
from pydag.structure.text import short_repr

MISSING: Any = object()
"""Stands for an argument that a call doesn't give."""


def refuse_class(tree: object, needed: str, cure: str) -> None:
    """Raises TypeError where a class was given in the place of an instance.

    Args:
        needed: What the call takes.
        cure: What to do; `{}` stands for the name of the class.
    """
    if isinstance(tree, type):
        name = tree.__name__
        raise TypeError(f"{needed}, got the class {name}\n  {cure.format(name)}")


def check_function(name: str, func: object, tree: object) -> None:
    """Checks what a function of DAGs is to call.

    Args:
        name: Of the function of DAGs.

    Raises:
        TypeError: It can't be called.
    """
    if callable(func):
        # A model may be called, too; but a function is no tree.
        if callable(tree) and _core.is_leaf(tree) and not _core.is_leaf(func):
            raise TypeError(
                f"{name} takes the function first and then the tree, but the second argument is a "
                f"function: {short_repr(tree)}\n  Swap them: {name}(f, tree)."
            )
        return
    advice = f"\n  Swap them: {name}(f, tree)." if callable(tree) else ""
    raise TypeError(
        f"{name} takes the function first and then the tree, but the first argument can't be "
        f"called: {short_repr(func)}{advice}"
    )
