# SPDX-License-Identifier: Apache-2.0
"""Constant objects that are compared before the core makes a call by a recipe."""

import threading
from collections.abc import Sequence

import pydag._core as _core
from pydag._core import SpecKey
from pydag.jaxinterop.static.constants import State

MOST_WATCHED = 16


class Watched:
    """What constant objects held when recipes were made; and the recipes.

    No recipe may be there whose objects nobody looks at, so both change together, under a lock.

    Args:
        flat_call: The core's, which has the recipes.
    """

    __slots__ = ("_flat_call", "_lock", "states")

    def __init__(self, flat_call: _core.FlatCall) -> None:
        self._flat_call = flat_call
        # What is released under it may run code that calls this function.
        self._lock = threading.RLock()
        self.states: list[State] = []  # the core looks whether there are any

    def look_again(self) -> bool:
        """Looks at the objects; if one holds something else, forgets all recipes.

        Returns whether all still hold the same.
        """
        if all(state.look_again() for state in self.states):
            return True
        self.forget()
        return False

    def add(self, spec_key: SpecKey, recipe: _core.Recipe, states: Sequence[State]) -> None:
        """Adds a recipe for a structure, and what it was made for."""
        with self._lock:
            if len(self.states) + len(states) > MOST_WATCHED:
                self.forget()
            known = set(map(id, self.states))
            self.states += [state for state in states if id(state) not in known]
            _core.add_recipe(self._flat_call, spec_key, recipe)

    def forget(self) -> None:
        """Forgets all recipes, so the next calls are taken apart in full."""
        with self._lock:
            _core.forget_recipes(self._flat_call, None)
            self.states.clear()  # the last: where there are none, calls go on without a look

    def forget_of(self, spec_key: SpecKey) -> None:
        """Forgets the recipes for one structure."""
        with self._lock:
            _core.forget_recipes(self._flat_call, spec_key)
