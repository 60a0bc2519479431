# SPDX-License-Identifier: Apache-2.0
"""Which leaves are state that a model keeps, rather than something that is trained.

NNX tells the two apart by class: what a Variable that is no `nnx.Param` holds is a statistic, a
count, a cache or a key. `nnx.grad` doesn't differentiate by it unless it is told to.
"""

from collections.abc import Sequence

from pydag._core import PyDagSpec
from pydag.jaxinterop.foreign.flax_private import variable_classes
from pydag.registry.class_table import inherits
from pydag.structure.listing import Listing, Record

_TRAINED, _STATE = 1, 2


def are_state(spec: PyDagSpec, positions: Sequence[int]) -> list[bool]:
    """Whether each of these leaves is state. One that stands elsewhere, too, isn't.

    Args:
        positions: Of the leaves, among all.
    """
    classes = variable_classes()
    if classes is None:
        return [False] * len(positions)
    variable, param = classes

    def meaning(record: Record) -> int:
        """What the node says of all that lies below it; 0 if it says nothing."""
        if not isinstance(record.type, type) or not inherits(record.type, variable):
            return 0
        return _TRAINED if inherits(record.type, param) else _STATE

    listing = Listing.of(spec)
    if all(meaning(record) != _STATE for record in listing.records):
        return [False] * len(positions)
    met = [0] * len(listing.records)  # as what each node is met, on all ways to it
    met[0] = _TRAINED
    for position in listing.downwards():
        if listing.records[position].is_alias:
            met[listing.target(position)] |= met[position]
            continue
        said = meaning(listing.records[position]) or met[position]
        for child in listing.children(position):
            met[child] |= said
    return [met[listing.leaves[position]] == _STATE for position in positions]
