# SPDX-License-Identifier: Apache-2.0
"""How the traced leaves of a structure become the flat arguments of a compiled function."""

from collections.abc import Collection, Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag._core import CallKey, PyDagSpec
from pydag.jaxinterop.static.leaves import copy_of_array
from pydag.jaxinterop.static.pick import Picker, picker, put_in
from pydag.jaxinterop.structure.groups import in_order
from pydag.typing import Leaf

Tag = list[Any]
"""An empty list, which belongs to one structure: see `FlatNames`."""

MOST_SPREAD = 16
"""Leaves that are passed one by one, at most.

That spares each call a tuple, less than a microsecond. A trace, in which JAX makes a tree of each
argument, takes longer by 8 microseconds a leaf.
"""


def copy_of_donated(leaf: Leaf) -> Leaf:
    """A copy of a leaf, unless JAX takes the leaf itself twice: only its own arrays are donated."""
    is_array = isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)
    return copy_of_array(leaf) if is_array else leaf


def _tagged(tag: Tag, pick: Picker | None) -> Picker:
    """A function that returns the tag, followed by the leaves that `pick` takes, if any."""
    return (lambda _: tag) if pick is None else (lambda leaves: (tag, pick(leaves)))


class FlatArguments:
    """Picks the donated and the kept leaves of one structure, by sharding.

    Args:
        spec: The structure.
        static: Positions of the static leaves.
        donated: Positions of the donated leaves.
        groups: For each leaf, which of the shardings it gets; None where there is but one.
        number: How many shardings there are.
        is_listed: Whether the kept leaves are a tuple even if there is only one of them.
        may_spread: Whether the leaves may be passed one by one, where none is donated.
        may_repeat: Whether one object may be several leaves.
    """

    def __init__(
        self,
        spec: PyDagSpec,
        static: Sequence[int],
        donated: Collection[int],
        groups: Sequence[int] | None = None,
        number: int = 0,
        is_listed: bool = False,
        may_spread: bool = False,
        may_repeat: bool = False,
    ) -> None:
        self.spec, self.groups, size = spec, groups, spec.num_leaves
        traced = sorted(set(range(size)).difference(static)) if static else range(size)

        def take(chosen: Sequence[int]) -> Picker:
            if groups is None:
                pick = picker(chosen, size)
                return lambda leaves: tuple(pick(leaves))
            parts = [[i for i in chosen if groups[i] == group] for group in range(number)]
            pickers = [picker(part, size) for part in parts]
            return lambda leaves: tuple(pick(leaves) for pick in pickers)

        gone = tuple(i for i in traced if i in donated) if donated else ()
        kept = tuple(i for i in traced if i not in donated) if donated else tuple(traced)
        is_plain = len(kept) == size and groups is None and not is_listed
        self.donated = tuple(i for i, leaf in enumerate(traced) if leaf in donated) if gone else ()
        """Positions of the donated ones among the traced ones."""
        self.order = None if groups is None else tuple(groups[i] for i in traced)
        """The group of each traced leaf."""
        self.tag: Tag = []
        self.take_donated = _tagged(self.tag, take(gone) if gone or groups is not None else None)
        self.take_kept: Picker = (lambda leaves: leaves) if is_plain else take(kept)
        self.is_spread = may_spread and groups is None and not gone and len(kept) <= MOST_SPREAD
        """Whether the kept leaves are passed one by one, without a tag."""
        self.gone = gone or None
        self.kept = None if is_plain else kept
        self.copy = copy_of_donated if gone and may_repeat else None
        """Makes a copy of a donated leaf that stands at another place, too; None where none can."""

    def pick(self, key: CallKey, leaves: Sequence[Leaf]) -> tuple[CallKey, *tuple[Any, ...]]:
        """The arguments of a flat function: a key, the donated leaves, the kept ones."""
        if self.is_spread:
            return key, *self.take_kept(leaves)
        return key, self.take_donated(self._apart(leaves)), self.take_kept(leaves)

    def _apart(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        if self.copy is None or self.gone is None or self.kept is None:
            return leaves
        found = list(leaves)
        donated = _core.donated_apart(tuple(leaves), self.gone, self.kept, self.copy)
        for position, leaf in zip(self.gone, donated, strict=True):
            found[position] = leaf
        return found


def join(
    picked: tuple[int, ...],
    order: tuple[int, ...] | None,
    donated: Sequence[Any],
    kept: Sequence[Any],
) -> list[Leaf]:
    """The traced leaves, which were divided.

    Args:
        picked: Which of them are donated.
        order: The group of each, where they are in groups.
        donated: A tag; or a tag and the donated leaves.
    """
    donated = donated[1] if donated else ()
    if order is None:
        return put_in(kept, zip(picked, donated, strict=True))
    chosen = frozenset(picked)
    groups = [group + len(kept) if i in chosen else group for i, group in enumerate(order)]
    return in_order((*kept, *donated), groups)
