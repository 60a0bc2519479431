# SPDX-License-Identifier: Apache-2.0
"""How JAX calls the flat leaves of a compiled function: by their paths in the user's arguments."""

import inspect
import weakref
from collections import OrderedDict
from typing import Any

from jax import tree_util

from pydag._core import running_key
from pydag.jaxinterop.messages.path_texts import path_texts
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.packed.packed import Packed

from .flat_arguments import FlatArguments
from .key import Key

_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for name in ("key", "donated", "kept")
]


_SPREAD = [
    inspect.Parameter("key", inspect.Parameter.POSITIONAL_ONLY),
    inspect.Parameter("leaves", inspect.Parameter.VAR_POSITIONAL),
]


class FlatNames(inspect.Signature):
    """The signature of `flat(key, donated, kept)`, which knows the leaves in the user's terms.

    JAX binds the arguments to it where it needs their names: when it traces, and for an error. It
    doesn't pass the key on. So what stands for the donated leaves has a tag, an object that belongs
    to one structure, by which that structure is found.
    """

    def __init__(self) -> None:
        super().__init__(_PARAMETERS)
        # By the id of the tag, which belongs to its flat arguments, and lives as long as it does.
        self._known: weakref.WeakValueDictionary[int, FlatArguments] = weakref.WeakValueDictionary()

    def remember(self, flat_arguments: FlatArguments) -> None:
        self._known[id(flat_arguments.tag)] = flat_arguments

    def bind(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """Binds as usual; if the structure is known, binds each leaf under its path."""
        bound = self._bound(*args) if len(args) == len(_PARAMETERS) and not kwargs else None
        return super().bind(*args, **kwargs) if bound is None else bound

    def _bound(self, _key: Any, donated: Any, kept: Any) -> inspect.BoundArguments | None:
        flat_arguments = self._known.get(id(donated[0] if donated else donated))
        if flat_arguments is None:
            return None
        paths = path_texts(flat_arguments.spec, CALL)
        names = tree_util.tree_leaves(
            (flat_arguments.take_donated(paths), flat_arguments.take_kept(paths))
        )
        leaves = tree_util.tree_leaves((donated, kept))
        if len(names) != len(leaves):
            return None
        return inspect.BoundArguments(self, OrderedDict({"": Packed(leaves, tuple(names))}))


class SpreadNames(inspect.Signature):
    """The signature of `spread(key, *leaves)`, likewise. Which structure it is, the core knows."""

    def __init__(self) -> None:
        super().__init__(_SPREAD)

    def bind(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """Binds as usual; where the structure is known, binds each leaf under its path."""
        bound = super().bind(*args, **kwargs)
        key = running_key()
        if key is None or not isinstance(key.value, Key):
            return bound
        untraced, leaves = key.value.untraced, args[1:]
        paths = path_texts(untraced.spec, CALL)
        names = [paths[position] for position in untraced.traced_positions()]
        if len(names) == len(leaves):
            bound.arguments.clear()
            bound.arguments[""] = Packed(leaves, tuple(names))
        return bound
