# SPDX-License-Identifier: Apache-2.0
"""Where two structures differ, in words and side by side."""

import pydag._core as _core
from pydag._core import PyDagSpec

from .compare import SideBySide


class Explanation(str):
    """Where two structures differ, as text; `side_by_side` shows both structures."""

    __slots__ = ("_specs",)
    _specs: tuple[PyDagSpec, PyDagSpec]

    def side_by_side(self, width: int = 100, limit: int | None = 200) -> SideBySide:
        """Both structures as `view` shows them, line by line; `!` marks the lines that differ.

        Args:
            width: The longest line, in characters.
            limit: The most lines; None: all of them.
        """
        return SideBySide(*self._specs, width, limit)


def explain(spec_a: PyDagSpec, spec_b: PyDagSpec) -> Explanation:
    """Where two structures differ, in words; empty if and only if they are equal.

    It names the first eight differences by their paths: nodes that differ, or two paths that lead
    to one object in one structure and to two in the other. Below nodes that differ nothing is
    compared. The cost is linear in the number of objects.

    Args:
        spec_a: The first structure.
        spec_b: The second.

    >>> w = [1.0]
    >>> tied, untied = {"a": w, "b": w}, {"a": w, "b": [1.0]}
    >>> print(explain(pydag.dag_structure(tied), pydag.dag_structure(untied)))
    tree['a'] and tree['b']
      first:  one object
      second: two objects

    `explain(a, b).side_by_side()` shows both structures beside each other.
    """
    explanation = Explanation(_core.explain(spec_a, spec_b))
    explanation._specs = spec_a, spec_b
    return explanation
