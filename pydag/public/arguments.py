# SPDX-License-Identifier: Apache-2.0
"""Arguments that a call doesn't give, and functions that come before the tree."""

from typing import Any

from pydag.structure.text import short_repr


class _Missing:
    def __repr__(self) -> str:
        return "<MISSING>"


MISSING: Any = _Missing()
"""Stands for an argument that a call doesn't give."""


def check_function(name: str, func: object, tree: object) -> None:
    """Raises TypeError if the function argument of a function of DAGs can't be called."""
    if not callable(func):
        advice = f"\n  Swap them: {name}(f, tree)." if callable(tree) else ""
        raise TypeError(
            f"{name} takes the function first and then the tree, but the first argument can't be "
            f"called: {short_repr(func)}{advice}"
        )
