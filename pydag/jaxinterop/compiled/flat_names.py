# SPDX-License-Identifier: Apache-2.0
"""The names that JAX shows for the arguments of the function that it compiles."""

import inspect
from typing import Any

from jax import tree_util

from pydag._core import PyDagSpec
from pydag.jaxinterop.boundary.arguments import argument_text
from pydag.jaxinterop.boundary.naming import NamedLeaves

from .leaf_groups import LeafGroups, Tag

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
        self._known: dict[int, tuple[Tag, PyDagSpec, LeafGroups]] = {}

    def remember(self, spec: PyDagSpec, groups: LeafGroups) -> None:
        self._known[id(groups.tag)] = groups.tag, spec, groups

    def forget(self) -> None:
        self._known.clear()

    def bind(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """As ever; for arguments whose structure is known, all leaves with their paths."""
        bound = super().bind(*args, **kwargs)
        _, donated, kept = bound.args
        found = self._known.get(id(donated[0] if donated else donated))
        if found is None:
            return bound
        _, spec, groups = found
        paths = [argument_text(accessor) for accessor in spec.accessors()]
        names = tree_util.tree_leaves((groups.take_donated(paths), groups.take_kept(paths)))
        leaves = tree_util.tree_leaves((donated, kept))
        if len(names) == len(leaves):
            bound.arguments.clear()
            bound.arguments[""] = NamedLeaves(names, leaves)
        return bound
