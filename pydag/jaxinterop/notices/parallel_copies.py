# SPDX-License-Identifier: Apache-2.0
"""Parallel copies: children of one node that are alike and hold the same objects, leaf by leaf.

Such as `{"policy": model, "reference": model}`. JAX gives the same array back for `astype`,
`asarray` and `device_put`, so a copy that was made that way is none, and its ties aren't meant.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.function_cache import cached_for_function, frozen
from pydag.jaxinterop.messages.at_call import warn_at_call
from pydag.jaxinterop.refs.access import is_top_level
from pydag.jaxinterop.structure.pairing import from_leaves_up, numbers_of_alike
from pydag.ops.select import is_prefix, select
from pydag.structure.apart import apart
from pydag.structure.listing import Listing
from pydag.typing import Where


class SharedSelectionWarning(UserWarning):
    """A selection takes a leaf in one of several parallel copies, and so in all of them.

    Parallel copies are children of one node that are alike and hold the same objects, such as
    `{"policy": model, "reference": model}`. `wrt="['policy']*"` then selects the leaves of the
    reference, too: they are the same. The warning comes once for each trace, and once for each
    structure that a function which isn't compiled is called with.
    """


def parallel_copies(listing: Listing) -> list[list[int]]:
    """The positions of parallel copies, in a list for each group of them."""
    records = listing.records
    numbers = numbers_of_alike(listing, lambda position: position, {})
    found: list[list[int]] = []
    for position, record in enumerate(records):
        if record.num_children < 2:
            continue
        groups: dict[int, list[int]] = {}
        for child in listing.children(position):
            groups.setdefault(numbers[child], []).append(child)
        found += [group for group in groups.values() if len(group) > 1]
    if not found:
        return found
    sizes = from_leaves_up(listing, lambda p, _, below: 1 if records[p].is_leaf else sum(below))
    return [group for group in found if sizes[group[0]] > 1]


class Divided(NamedTuple):
    """Two places of a leaf in parallel copies, of which a selection takes one."""

    selected: str
    other: str

    def text(self, name: str) -> str:
        """A warning.

        Args:
            name: Of the selection, such as "wrt".
        """
        return (
            f"{name} selects {self.selected}, and with it {self.other}, which is the same object\n"
            "  The two are in parallel copies, which hold the same objects leaf by leaf, so all "
            "that is selected in one is selected in both. If they only start equal, make one of "
            "them a copy: pj.tree.copy(...)."
        )


def divided(
    where: Where, spec: PyDagSpec, can: Sequence[bool], depth: int, roots: Sequence[str]
) -> Divided | None:
    """Where a selection takes a leaf in one of several parallel copies; None if nowhere.

    Args:
        can: Whether each leaf may be selected.
        depth: As in `pydag.ops.select.select`.
        roots: Begin the paths: one for the tree, or at depth 1 one for each of its children.
    """
    patterns = _patterns(where)
    if not patterns or not spec.num_shared:
        return None
    listing = Listing.of(spec)
    groups = parallel_copies(listing)
    if not groups:
        return None
    copies = frozenset(position for group in groups for position in group)

    def copy(_: int, around: int, children: Sequence[int]) -> list[int]:
        """The outermost copy in which each child is; -1 for none."""
        return [child if around < 0 and child in copies else around for child in children]

    each = apart(listing, spec, -1, copy)
    flags = select(patterns, each.spec, each.leaves, spec.namespace, depth=depth)
    found: dict[int, dict[int, bool]] = {}
    for leaf, copied, flag in zip(each.leaves, each.states, flags, strict=True):
        if can[leaf]:
            found.setdefault(copied, {})[leaf] = flag
    for group in groups:
        different = _different([found.get(position, {}) for position in group])
        if different is not None:
            index, one, other = different
            texts = [_text(listing, group[i], index, depth, roots) for i in (one, other)]
            return Divided(*texts)
    return None


def _patterns(where: Where) -> list[Where]:
    """The patterns of a selection. What is selected in another way is so in all of the copies."""
    items: list[Any] = where if type(where) is list and not is_prefix(where) else [where]
    nested = [_patterns(item) if type(item) is list else [item] for item in items]
    return [item for each in nested for item in each if isinstance(item, str)]


def _different(found: Sequence[dict[int, bool]]) -> tuple[int, int, int] | None:
    """The number of a leaf, and a copy in which it is selected, and one in which it isn't."""
    for index in found[0]:
        flags = [each.get(index) for each in found]
        if True in flags and False in flags:
            return index, flags.index(True), flags.index(False)
    return None


def _text(listing: Listing, position: int, index: int, depth: int, roots: Sequence[str]) -> str:
    """The path of a leaf below a position."""
    leaf, way = listing.leaves[index], [*listing.way(position)]
    at = listing.target(position)
    while at != leaf:
        at = next(child for child in listing.children(at) if leaf in listing.below(child))
        way.append(at)
        at = listing.target(at)
    steps = (_core.step_text(listing.records[i].entry, listing.records[i].attribute) for i in way)
    root = roots[listing.children(0).index(way[0])] if depth else roots[0]
    return root + "".join(list(steps)[depth:])


def tell_divided(
    fun: Callable[..., Any], wrt: Where | None, spec: PyDagSpec, find: Callable[[], Divided | None]
) -> None:
    """Warns at each trace; outside of one, once for each function, selection and structure.

    Args:
        spec: Of what is selected in.
        find: Finds such a leaf.
    """
    if wrt is None or not spec.num_shared:
        return
    if is_top_level():
        known: set[Any] = cached_for_function(fun, "divided", lambda _: set())[1]
        try:
            key = spec, frozen(wrt)
            if key in known:
                return
            known.add(key)
        except TypeError:  # a selection that can't be hashed
            pass
    found = find()
    if found is not None:
        warn_at_call(found.text("wrt"), SharedSelectionWarning)
