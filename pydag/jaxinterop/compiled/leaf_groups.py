# SPDX-License-Identifier: Apache-2.0
"""How `jit` divides the leaves of one structure: static, donated and kept, by sharding."""

from collections.abc import Collection, Sequence
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import CallKey, SpecKey
from pydag.jaxinterop.static.constants import State, with_state
from pydag.jaxinterop.static.leaves import Static, is_settled
from pydag.jaxinterop.static.option import is_array
from pydag.jaxinterop.static.pick import picker
from pydag.jaxinterop.static.refused import holds_weak
from pydag.typing import Leaf

from .extra_results import ExtraResults
from .flat_arguments import FlatArguments
from .key import MOST, Key, Keys

Positions = tuple[int, ...]


class Recent(NamedTuple):
    """Static leaves that are recognized by identity; one object, since threads replace it."""

    statics: Sequence[Leaf]
    key: CallKey
    watched: list[State]  # what constant objects among them hold


class LeafGroups:
    """How the leaves of one structure are divided.

    Args:
        spec_key: The structure.
        positions: Of the static leaves.
        flat_arguments: How the others become the arguments of a flat function.
        as_one: The keys of the function.
        asks: Whether a predicate tells leaves apart by more than their classes.
        may_repeat: Whether one object may be several leaves.
    """

    def __init__(
        self,
        spec_key: SpecKey,
        positions: tuple[int, ...],
        flat_arguments: FlatArguments,
        as_one: Keys,
        asks: bool = False,
        may_repeat: bool = False,
    ) -> None:
        spec = spec_key.spec
        self.spec_key, self.spec, size = spec_key, spec, spec.num_leaves
        self.positions, self.flat_arguments = positions, flat_arguments
        self.may_repeat = may_repeat
        self.pick_static = picker(positions, size)
        self._as_one, self._asks = as_one, asks
        # JAX asks for the hash of a key at each call.
        self.keys: dict[tuple[Static, ...], CallKey] = {}
        self._recent: Recent | None = None
        self.leads_away = False  # whether a static leaf holds a weak reference
        self.extras: dict[CallKey, ExtraResults] = {}  # by the key of the function that gets refs
        self._inner_keys: dict[CallKey, CallKey] = {}
        self._all_kept: FlatArguments | None = None

    @cached_property
    def traced(self) -> Positions:
        """Where the traced leaves stand."""
        skip = frozenset(self.positions)
        return tuple(i for i in range(self.spec.num_leaves) if i not in skip)

    def last_keys(self, count: int) -> list[Key]:
        """The latest keys, at most `count`; the latest comes last."""
        return [key.value for key in list(self.keys.values())[-count:]]

    def key(self, leaves: Sequence[Leaf]) -> CallKey | None:
        """The `Key` for these leaves, if an earlier call had it.

        In the ordinary case the static leaves are the very objects of the last call. They are then
        recognized by identity, if their values can't change.
        """
        static = self.pick_static(leaves)
        recent = self._recent
        is_recent = recent is not None and all(map(is_, static, recent.statics))
        if recent is not None and is_recent and all(x.look_again() for x in recent.watched):
            return recent.key
        found = self.keys.get(tuple(with_state(Static(leaf)) for leaf in static))
        if found is not None:
            self._set_recent(static, found)
        return found

    def remember(self, leaves: Sequence[Leaf], key: Key) -> CallKey:
        call_key = self._as_one(key)
        if len(self.keys) >= MOST:
            self.keys.clear()
        self.keys[key.untraced.statics] = call_key
        self._set_recent(self.pick_static(leaves), call_key)
        return call_key

    def _set_recent(self, static: Sequence[Leaf], key: CallKey) -> None:
        # A weak reference is looked up each time: it may lead to an argument now.
        self.leads_away = any(map(holds_weak, static))
        states = (known.state for known in key.value.untraced.statics)
        watched = [state for state in states if state is not None]
        is_recent = all(map(is_settled, static)) and not self.leads_away
        self._recent = Recent(static, key, watched) if is_recent else None

    def numbers(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Which of the traced leaves stand at these positions."""
        numbers = {position: i for i, position in enumerate(self.traced)}
        return tuple(numbers[position] for position in positions)

    def gone(self) -> set[int]:
        """The donated leaves, by position among all."""
        return {self.traced[i] for i in self.flat_arguments.donated}

    def all_kept(self) -> FlatArguments:
        """Those in which all leaves are kept, without shardings."""
        if self._all_kept is None:
            self._all_kept = FlatArguments(self.spec, self.positions, ())
        return self._all_kept

    def inner_key(self, key: CallKey) -> CallKey:
        """The key for the same leaves, all of them kept."""
        known = self._inner_keys.get(key)
        if known is None:
            known = self._inner_keys[key] = self._as_one(Key(key.value.untraced, (), None))
        return known

    def donating(self, donated: Collection[int], number: int) -> FlatArguments:
        """Those that donate other leaves.

        Args:
            number: Of shardings.
        """
        return FlatArguments(
            self.spec,
            self.positions,
            donated,
            self.flat_arguments.groups,
            number,
            is_listed=True,
            may_repeat=self.may_repeat,
        )

    def plan(
        self, key: CallKey, leaves: Sequence[Leaf], flat_arguments: FlatArguments, /, **more: Any
    ) -> _core.CallPlan | None:
        """How the core makes calls like this one; None where it can't.

        It can't where leaves are in groups, or static leaves have to be compared each time, or
        leaves have to be asked; nor where another thread has made a call for another key meanwhile.

        Args:
            key: Of this call, among those of these groups.
            more: What else the plan says. With `key` JAX's function has a key of its own.
        """
        recent = self._recent
        if recent is None or recent.key is not key or self.flat_arguments.order is not None:
            return None
        if self._asks and not all(is_array(leaves[i]) for i in self.traced):
            return None
        parts: dict[str, Any] = {"key": key, **more}
        return _core.call_plan(
            tag=flat_arguments.tag,
            classes=tuple(map(type, leaves)),
            static_positions=self.positions,
            statics=tuple(recent.statics),
            watched=tuple(state.look_again for state in recent.watched),
            donated=flat_arguments.gone,
            kept=flat_arguments.kept,
            copy=flat_arguments.copy,
            is_spread=flat_arguments.is_spread,
            **parts,
        )
