# SPDX-License-Identifier: Apache-2.0
"""What a compiled function is made for, but for the shapes and types of its arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import CallKey
from pydag.jaxinterop.messages.roots import shortened
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs, argument_text, unwrap_static
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf

from .flat_arguments import join

MOST = 4096  # plans and keys that are remembered; they are easily made again


class Keys:
    """Gives the keys of one function to JAX: the same object for keys that are equal.

    JAX compares keys while it looks into tables that other threads may change. If Python code ran
    then, they would, and jaxlib would crash. So JAX compares these objects by identity.
    """

    def __init__(self) -> None:
        self._known: dict[Any, CallKey] = {}

    def __call__(self, key: Any) -> CallKey:
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST:
                self._known.clear()
            found = self._known.setdefault(key, _core.call_key(key))
        return found


class Key(NamedTuple):
    """What a compiled function is made for, but for the shapes and types of its arrays."""

    untraced: Untraced
    donated: tuple[int, ...]  # positions among the traced leaves
    order: tuple[int, ...] | None  # the group of each traced leaf, where they are in groups

    def __repr__(self) -> str:
        """What JAX shows of it, where it compares keys."""
        return shortened(f"<arguments {self.untraced.describe(argument_text)}>", 1000)

    def join(self, donated: Sequence[Any], kept: Sequence[Any]) -> list[Leaf]:
        """The traced leaves, which were divided into groups.

        Args:
            donated: A tag; or a tag and the donated leaves.
        """
        return join(self.donated, self.order, donated, kept)


def unwrapped(arguments: tuple[Args, Kwargs]) -> tuple[Args, Kwargs]:
    """The arguments as the function gets them: static ones are no leaves there."""
    args, kwargs = arguments
    return tuple(map(unwrap_static, args)), {k: unwrap_static(v) for k, v in kwargs.items()}
