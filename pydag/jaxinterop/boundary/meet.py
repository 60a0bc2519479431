# SPDX-License-Identifier: Apache-2.0
"""The sharing that two DAGs have in common: what is one object in both stays one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.jaxinterop.prefixes.neutral import Slot, class_of, marked, meant
from pydag.jaxinterop.prefixes.treatments import one_level
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .dag import Dag, InnerDag, rebuilt


class Meeting(NamedTuple):
    """A structure that shares what two structures share.

    Args:
        untraced: The structure, with all else as the first has it.
        order: Which leaf of the first stands at the place of each traced leaf.
        has_modules: Whether a module came apart, or what a module holds.
    """

    untraced: Untraced
    order: Sequence[int]
    has_modules: bool

    def dag(self, leaves: Sequence[Leaf]) -> InnerDag:
        """A Dag of this structure with the leaves of the first one, some of them several times."""
        return rebuilt(self.untraced, [leaves[i] for i in self.order], InnerDag)

    def match(self, dag: Dag) -> InnerDag:
        """A Dag of this structure with the leaves of another Dag."""
        return rebuilt(self.untraced, self.untraced.match(dag.tree, "", ""), InnerDag)


def meet(one: Untraced, other: Untraced, is_last: bool = False) -> Meeting:
    """The sharing that holds in both of two structures, which are alike but for it.

    Args:
        is_last: Whether an object that comes apart does so at each of its places.
    """
    options = one.options
    first, second = marked(one.spec), marked(other.spec)
    split, has_modules = _split(first, second, options)
    tree = _built(first, second, split if is_last else set(), options)
    slots, spec = options.flatten(tree)
    static = dict(zip(one.positions, one.statics, strict=True))
    numbers = {position: i for i, position in enumerate(one.traced_positions())}
    positions = tuple(i for i, slot in enumerate(slots) if slot.index in static)
    statics = tuple(static[slots[i].index] for i in positions)
    order = [numbers[slot.index] for slot in slots if slot.index in numbers]
    return Meeting(
        Untraced(_core.spec_key(meant(spec)), positions, statics, options), order, has_modules
    )


def _below(one: AnyDag, other: AnyDag, options: Options) -> tuple[list[Any], list[Any], Any] | None:
    """The children of two objects that stand at one place; None for leaves."""
    if type(one) is Slot:
        return None
    _, children, spec = one_level(one, options)
    return None if spec.is_leaf() else (children, spec.flatten_up_to(other), spec)


def _split(first: AnyDag, second: AnyDag, options: Options) -> tuple[set[int], bool]:
    """The objects of the first that stand for several of the second."""
    partners: dict[int, int] = {}
    split: set[int] = set()
    has_modules = False
    seen: set[tuple[int, int]] = set()
    waiting = [(first, second, False)]
    while waiting:
        one, other, in_module = waiting.pop()
        is_module = _core.is_module(class_of(one), options.namespace)
        if partners.setdefault(id(one), id(other)) != id(other):
            split.add(id(one))
            has_modules |= in_module or is_module
        if (id(one), id(other)) in seen:
            continue
        seen.add((id(one), id(other)))
        below = _below(one, other, options)
        if below is not None:
            pairs = zip(below[0], below[1], strict=True)
            waiting.extend((a, b, in_module or is_module) for a, b in pairs)
    return split, has_modules


def _built(first: AnyDag, second: AnyDag, apart: set[int], options: Options) -> AnyDag:
    """A tree with an object for each pair that occurs; one for each place of those in `apart`."""
    made: dict[Any, AnyDag] = {}
    copies = 0

    def key_of(one: AnyDag, other: AnyDag, copy: int) -> Any:
        nonlocal copies
        if id(one) in apart:
            copies += 1
            return id(one), id(other), copies
        return id(one), id(other), copy

    root = key_of(first, second, 0)
    waiting: list[tuple[AnyDag, AnyDag, Any, Any]] = [(first, second, root, None)]
    while waiting:
        one, other, key, ready = waiting.pop()
        if key in made:
            continue
        if ready is not None:
            spec, keys = ready
            made[key] = _core.unflatten(spec, [made[child] for child in keys])
            continue
        below = _below(one, other, options)
        if below is None:
            made[key] = Slot(one.index) if type(one) is Slot else one
            continue
        children, others, spec = below
        pairs = list(zip(children, others, strict=True))
        keys = [key_of(a, b, key[2]) for a, b in pairs]
        waiting.append((one, other, key, (spec, keys)))
        waiting.extend((a, b, k, None) for (a, b), k in zip(pairs, keys, strict=True))
    return made[root]
