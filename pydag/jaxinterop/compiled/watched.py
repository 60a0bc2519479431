# SPDX-License-Identifier: Apache-2.0
"""Constant objects that are compared before the core makes a call by a recipe."""

from collections.abc import Sequence

import pydag._core as _core
from pydag.jaxinterop.static.constants import State

MOST_WATCHED = 16


class Watched:
    """What constant objects held when recipes were made.

    Args:
        flat_call: The core's, which has the recipes.
    """

    __slots__ = ("_flat_call", "states")

    def __init__(self, flat_call: _core.FlatCall) -> None:
        self._flat_call = flat_call
        self.states: list[State] = []

    def look_again(self) -> bool:
        """Looks at the objects; if one holds something else, forgets all recipes.

        Returns whether all still hold the same.
        """
        if all(state.look_again() for state in self.states):
            return True
        self.forget()
        return False

    def add(self, states: Sequence[State]) -> None:
        """Notes what a recipe was made for."""
        if len(self.states) + len(states) > MOST_WATCHED:
            self.forget()
        known = set(map(id, self.states))
        self.states += [state for state in states if id(state) not in known]

    def forget(self) -> None:
        """Forgets all recipes, so the next calls are taken apart in full."""
        self.states.clear()
        _core.forget_recipes(self._flat_call, None)
