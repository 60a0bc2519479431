# SPDX-License-Identifier: Apache-2.0
"""The names that JAX shows for the arguments of the function that it compiles."""

import inspect
import weakref
from typing import Any

from jax import tree_util

from pydag.jaxinterop.messages.naming import NamedLeaves
from pydag.jaxinterop.messages.path_texts import path_texts
from pydag.jaxinterop.messages.roots import CALL

from .division import Division

_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for name in ("key", "donated", "kept")
]


class FlatNames(inspect.Signature):
    """The signature of `flat(key, donated, kept)`, which knows the leaves in the user's terms.

    JAX binds the arguments to it where it needs their names: when it traces, and for an error. It
    doesn't pass the key on. So what stands for the donated leaves has a tag, an object that belongs
    to one structure, by which that structure is found.
    """

    def __init__(self) -> None:
        super().__init__(_PARAMETERS)
        # By the id of the tag, which belongs to the division and lives as long as it does.
        self._known: weakref.WeakValueDictionary[int, Division] = weakref.WeakValueDictionary()

    def remember(self, division: Division) -> None:
        self._known[id(division.tag)] = division

    def bind(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """Binds as usual; if the structure is known, binds each leaf under its path."""
        bound = super().bind(*args, **kwargs)
        _, donated, kept = bound.args
        division = self._known.get(id(donated[0] if donated else donated))
        if division is None:
            return bound
        paths = path_texts(division.spec, CALL)
        names = tree_util.tree_leaves((division.take_donated(paths), division.take_kept(paths)))
        leaves = tree_util.tree_leaves((donated, kept))
        if len(names) == len(leaves):
            bound.arguments.clear()
            bound.arguments[""] = NamedLeaves(names, leaves)
        return bound
