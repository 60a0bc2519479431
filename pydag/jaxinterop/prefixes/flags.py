# SPDX-License-Identifier: Apache-2.0
"""Trees of booleans about the leaves of arguments, in which containers may be of other types."""

from typing import Any

from pydag import _core
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Dag

from .neutral import Slot
from .treatments import one_level, shortened


def flags(name: str, prefix: Any, tree: Dag, options: Options) -> list[bool]:
    """What a prefix says about each distinct leaf of a tree: whether all its places are True.

    Containers are matched by their number of children, and dicts by their keys, so that tuples of
    booleans do for all of them.

    Args:
        name: Of the prefix.

    Raises:
        ValueError: It doesn't fit, or has other leaves than booleans.
    """
    leaves, spec = options.flatten(tree)
    found = [True] * len(leaves)
    waiting = [(prefix, _core.unflatten(spec, map(Slot, range(len(leaves)))), name)]
    while waiting:
        prefix, part, where = waiting.pop()
        if isinstance(prefix, bool):
            for slot in options.leaves(part):
                found[slot.index] &= prefix
            continue
        entries, given, own = one_level(prefix, options)
        if own.is_leaf():
            raise ValueError(
                f"{name} must be a tree of booleans, but {where} is {shortened(repr(prefix))}"
            )
        if isinstance(prefix, dict) and isinstance(part, dict):
            if prefix.keys() != part.keys():
                raise ValueError(
                    f"{where} has the keys {sorted(map(str, prefix))}, but the dict of the "
                    f"arguments has {sorted(map(str, part))}"
                )
            children = [part[entry[0].entry] for entry in entries]
        else:
            _, children, below = one_level(part, options)
            if below.is_leaf() or len(children) != len(given):
                count = "no children, it is a leaf" if below.is_leaf() else len(children)
                raise ValueError(
                    f"{where} has {len(given)} children, but the corresponding part of the "
                    f"arguments has {count}"
                )
        places = (entry.codify(where) for entry in entries)
        waiting.extend(zip(given, children, places, strict=True))
    return found
