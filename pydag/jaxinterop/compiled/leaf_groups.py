# SPDX-License-Identifier: Apache-2.0
"""How `jit` divides the leaves of one structure: static, donated and kept, by sharding."""

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple

from pydag import _core
from pydag._core import Hashed, PyDagSpec
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs, argument_text, joined, unwrap_static
from pydag.jaxinterop.prefixes.treatments import shortened
from pydag.jaxinterop.static.constants import State, with_state
from pydag.jaxinterop.static.leaves import Static, is_settled
from pydag.jaxinterop.static.option import is_array
from pydag.jaxinterop.static.untraced import Picker, Untraced, picker
from pydag.jaxinterop.static.weak_references import holds_weak
from pydag.typing import Leaf

Tag = list[Any]
"""An empty list, which belongs to one structure: see `FlatNames`."""

Positions = tuple[int, ...]

MOST = 4096  # plans and keys that are remembered; they are easily made again


class Key(NamedTuple):
    """What a compiled function is made for, but for the shapes and types of its arrays."""

    untraced: Untraced
    donated: tuple[int, ...]  # positions among the traced leaves
    order: tuple[int, ...] | None  # the group of each traced leaf, where they are in groups

    def __repr__(self) -> str:
        """What JAX shows of it, where it compares keys."""
        return shortened(f"<arguments {self.untraced.describe(argument_text)}>", 1000)

    def donated_positions(self) -> list[int]:
        """The same among all leaves."""
        traced = self.untraced.traced_positions() if self.donated else []
        return [traced[i] for i in self.donated]

    def join(self, donated: Sequence[Any], kept: Sequence[Any]) -> list[Leaf]:
        """The traced leaves, which were divided into groups.

        Args:
            donated: A tag; or a tag and the donated leaves.
        """
        donated = donated[1] if donated else ()
        if self.order is None:
            return joined(self.donated, donated, kept)
        chosen = frozenset(self.donated)
        waiting = [list(map(iter, groups)) for groups in (kept, donated)]
        return [next(waiting[i in chosen][group]) for i, group in enumerate(self.order)]


def unwrapped(arguments: tuple[Args, Kwargs]) -> tuple[Args, Kwargs]:
    """The arguments as the function gets them: static ones are no leaves there."""
    args, kwargs = arguments
    return tuple(map(unwrap_static, args)), {k: unwrap_static(v) for k, v in kwargs.items()}


def _tagged(tag: Tag, pick: Picker | None) -> Picker:
    """Takes a tag, and what is picked if anything is."""
    return (lambda _: tag) if pick is None else (lambda leaves: (tag, pick(leaves)))


class LookAgain(NamedTuple):
    """When the groups have to be made anew for other leaves of the structure, and how that is told.

    What is static depends on the classes of leaves: of those of modules, whose numbers are static,
    and where `static=` has classes or predicates, of all.
    """

    positions: Callable[[Sequence[Leaf]], Positions]  # of the static leaves, as they are now
    looks_at_all: bool = False
    asks: bool = False  # numbers, too: a predicate may tell them apart by their values


class LeafGroups:
    """How the leaves of one structure are divided.

    Args:
        spec: The structure.
        positions: Of the static leaves.
        donated: Positions of the donated ones.
        look: Says whether other leaves are divided so, too.
        groups: For each leaf, which of the shardings it gets; None where there is but one.
        number: Of shardings.
    """

    def __init__(
        self,
        spec: PyDagSpec,
        positions: tuple[int, ...],
        donated: frozenset[int],
        look: LookAgain,
        groups: Sequence[int] | None = None,
        number: int = 0,
    ) -> None:
        self.spec, size = spec, spec.num_leaves
        traced = sorted(set(range(size)).difference(positions))

        def take(chosen: Sequence[int]) -> Picker:
            if groups is None:
                pick = picker(chosen, size)
                return lambda leaves: tuple(pick(leaves))
            parts = [[i for i in chosen if groups[i] == group] for group in range(number)]
            pickers = [picker(part, size) for part in parts]
            return lambda leaves: tuple(pick(leaves) for pick in pickers)

        self.positions = positions
        self.donated = tuple(i for i, leaf in enumerate(traced) if leaf in donated)
        self.order = None if groups is None else tuple(groups[i] for i in traced)
        self.pick_static = picker(positions, size)
        self.tag: Tag = []
        has_donated = bool(self.donated) or groups is not None
        gone = tuple(i for i in traced if i in donated)
        kept = tuple(i for i in traced if i not in donated)
        self.take_donated = _tagged(self.tag, take(gone) if has_donated else None)
        is_plain = len(kept) == size and groups is None
        self.take_kept: Picker = (lambda leaves: leaves) if is_plain else take(kept)
        self._gone = gone or None
        self._kept = None if is_plain else kept
        skipped = frozenset(positions)
        looked_at = range(size) if look.looks_at_all else _core.module_leaves(spec)[0]
        self.checked = tuple(i for i in looked_at if i not in skipped)
        self.classes: tuple[type, ...] = ()
        self.is_told_by_classes = True
        self._look = look
        # JAX asks for the hash of a key at each call.
        self.keys: dict[tuple[Static, ...], Hashed] = {}
        self.recent: tuple[Sequence[Leaf], Hashed] | None = None
        self.leads_away = False  # whether a static leaf holds a weak reference
        self.watched: list[State] = []  # what constant objects of the recent key hold

    def fits(self, leaves: Sequence[Leaf]) -> bool:
        """Whether these leaves, of this structure, are divided so."""
        classes = tuple(type(leaves[i]) for i in self.checked)
        is_same = len(classes) == len(self.classes) and all(map(is_, classes, self.classes))
        if is_same and self.is_told_by_classes:
            return True
        if self._look.positions(leaves) != self.positions:
            return False
        self._set_classes(leaves)
        return True

    def _set_classes(self, leaves: Sequence[Leaf]) -> None:
        checked = [leaves[i] for i in self.checked]
        self.classes = tuple(map(type, checked))
        self.is_told_by_classes = not self._look.asks or all(map(is_array, checked))

    def last_keys(self, count: int) -> list[Key]:
        """So many that came last, the last one behind."""
        return [key.value for key in list(self.keys.values())[-count:]]

    def key(self, leaves: Sequence[Leaf]) -> Hashed | None:
        """The `Key` for these leaves, if there has been such a call.

        The very same static leaves, the ordinary case, are recognized without comparing them, if
        they stay as they are.
        """
        static = self.pick_static(leaves)
        recent = self.recent
        is_recent = recent is not None and all(map(is_, static, recent[0]))
        if recent is not None and is_recent and all(state.is_current() for state in self.watched):
            return recent[1]
        found = self.keys.get(tuple(with_state(Static(leaf)) for leaf in static))
        if found is not None:
            self._set_recent(static, found)
        return found

    def remember(self, leaves: Sequence[Leaf], key: Key) -> Hashed:
        hashed = _core.hashed(key)
        if len(self.keys) >= MOST:
            self.keys.clear()
        self.keys[key.untraced.statics] = hashed
        self._set_classes(leaves)
        self._set_recent(self.pick_static(leaves), hashed)
        return hashed

    def _set_recent(self, static: Sequence[Leaf], key: Hashed) -> None:
        # A weak reference is looked up each time: it may lead to an argument now.
        self.leads_away = any(map(holds_weak, static))
        is_recent = all(map(is_settled, static)) and not self.leads_away
        self.recent = (static, key) if is_recent else None
        states = (known.state for known in key.value.untraced.statics)
        self.watched = [state for state in states if state is not None]

    def recipe(self) -> _core.Recipe | None:
        """How the core calls the compiled function for the static leaves that came last.

        None where it can't: leaves are in groups, or static leaves have to be compared each time.
        """
        if self.recent is None or self.order is not None or not self.is_told_by_classes:
            return None
        static, key = self.recent
        return _core.recipe(
            key=key,
            tag=self.tag,
            static_positions=self.positions,
            statics=tuple(static),
            donated=self._gone,
            kept=self._kept,
            checked_positions=self.checked,
            classes=self.classes,
        )
