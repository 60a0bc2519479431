# SPDX-License-Identifier: Apache-2.0
"""The structure that a tree would have if several leaves were one object."""

from collections.abc import Mapping

import pydag._core as _core
from pydag._core import PyDagSpec


def with_merged_leaves(spec: PyDagSpec, same: Mapping[int, int]) -> PyDagSpec:
    """The structure in which earlier leaves replace some leaves.

    Args:
        spec: The structure.
        same: Maps the number of each replaced leaf to the number of the earlier leaf that takes its
            places.
    """
    rows, refs = _core.nodes_of(spec)
    kept = set(same.values())
    new_rows: list[tuple[object, ...]] = []
    number_of_leaf: dict[int, int] = {}  # for leaves that are kept: the number of the anchor
    new_numbers: list[int] = []  # of the anchor that each old anchor has become
    leaf = anchors = 0
    for row in rows:
        kind, is_anchor, count, *indices = row
        if kind == "alias":
            new_rows.append((kind, is_anchor, new_numbers[count], *indices))
            continue
        becomes_alias = kind == "leaf" and leaf in same
        if becomes_alias:
            number = number_of_leaf[same[leaf]]
            new_rows.append(("alias", False, number))
        else:
            number = anchors
            is_new_anchor = is_anchor or (kind == "leaf" and leaf in kept)
            new_rows.append((kind, is_new_anchor, count, *indices))
            if is_new_anchor:
                anchors += 1
        if is_anchor:
            new_numbers.append(number)
        if kind == "leaf":
            number_of_leaf[leaf] = number
            leaf += 1
    return _core.spec_from_nodes(spec.none_is_leaf, spec.namespace, tuple(new_rows), refs)
