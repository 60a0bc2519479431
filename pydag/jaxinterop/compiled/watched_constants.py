# SPDX-License-Identifier: Apache-2.0
"""Constant objects that are compared before the core makes a call by a recipe."""

import threading
from collections.abc import Sequence

import pydag._core as _core
from pydag._core import SpecKey
from pydag.jaxinterop.static.constants import State

MOST_WATCHED = 16


class WatchedConstants:
    """What constant objects held when recipes were made.

    No recipe may be there whose objects nobody looks at. So they are noted before a recipe is
    added, and dropped after all recipes are, unless one may have been added meanwhile: then they
    stay until the next time. Under the lock runs no code of a user's, which adding and forgetting
    recipes may run: it could wait for a thread that waits for the lock.

    Args:
        flat_call: The core's, which has the recipes.
    """

    __slots__ = ("_adding", "_flat_call", "_lock", "_started", "states")

    def __init__(self, flat_call: _core.FlatCall) -> None:
        self._flat_call = flat_call
        self._lock = threading.Lock()
        self._adding = self._started = 0  # additions that run; that have ever begun
        self.states: list[State] = []  # the core looks whether there are any

    def look_again(self) -> bool:
        """Looks at the objects; if one holds something else, forgets all recipes.

        Returns whether the recipes still hold.
        """
        if all(state.look_again() for state in self.states):
            return True
        self.forget()
        return False

    def add(self, spec_key: SpecKey, recipe: _core.Recipe, states: Sequence[State]) -> None:
        """Adds a recipe for a structure, and what it was made for."""
        if len(self.states) + len(states) > MOST_WATCHED:
            self.forget()
        with self._lock:
            self._adding += 1
            self._started += 1
            known = set(map(id, self.states))
            self.states += [state for state in states if id(state) not in known]
        try:
            _core.add_recipe(self._flat_call, spec_key, recipe)
        finally:
            with self._lock:
                self._adding -= 1

    def forget(self) -> None:
        """Forgets all recipes, so the next calls are taken apart in full."""
        with self._lock:
            started, is_quiet = self._started, self._adding == 0
        _core.forget_recipes(self._flat_call, None)
        dropped: list[State] = []  # released behind the lock: that may run code
        with self._lock:
            if is_quiet and self._started == started:
                dropped += self.states
                self.states.clear()

    def forget_of(self, spec_key: SpecKey) -> None:
        """Forgets the recipes for one structure."""
        _core.forget_recipes(self._flat_call, spec_key)
