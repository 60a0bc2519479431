# SPDX-License-Identifier: Apache-2.0
"""Which leaves are state: nothing is differentiated by them, nor trained, unless `wrt=` names them.

In NNX that is what a Variable holds that is no `nnx.Param`.
"""

from collections.abc import Sequence

from pydag._core import PyDagSpec
from pydag.registry.class_table import inherits
from pydag.structure.listing import Listing

variable_classes: list[tuple[type, type]] = []
"""Pairs of a class of variables and the class of those that are trained."""


def state_leaves(spec: PyDagSpec) -> frozenset[int]:
    """The leaves that are state, on every way to them."""
    if not variable_classes or spec.is_leaf():
        return frozenset()
    listing = Listing.of(spec)
    # For each node whether ways lead to it that are within parameters, or no variable, or state.
    met: list[set[bool]] = [set() for _ in listing.records]
    met[0].add(False)
    for position in listing.downwards():
        record = listing.records[position]
        if record.is_alias:
            met[listing.target(position)] |= met[position]
            continue
        said = _is_state(record.type)
        for child in listing.children(position) if record.num_children else ():
            met[child] |= met[position] if said is None else {said}
    positions: Sequence[int] = listing.leaves
    return frozenset(i for i, position in enumerate(positions) if met[position] == {True})


def _is_state(cls: object) -> bool | None:
    """Whether a class holds state; None if it isn't one of variables."""
    for variable, trained in variable_classes:
        if isinstance(cls, type) and inherits(cls, variable):
            return not inherits(cls, trained)
    return None
