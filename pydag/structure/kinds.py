# SPDX-License-Identifier: Apache-2.0
"""The core's table of the kinds of node, for code that reads listings and records."""

from typing import NamedTuple

import pydag._core as _core


class NodeKind(NamedTuple):
    """A kind of node.

    Args:
        name: Its name in listings.
        roles: The roles of its references, in their order: "keys", "names", "class",
            "default_factory", "maxlen", "registration", "aux_data", "meta", "entries".
        is_mapping: Whether it is a mapping: all mappings match one another.
        has_identity: False for a value, which can't be shared.
    """

    name: str
    roles: tuple[str, ...]
    is_mapping: bool
    has_identity: bool


NODE_KINDS = tuple(NodeKind._make(row) for row in _core.node_kinds())
MAPPINGS = frozenset(kind.name for kind in NODE_KINDS if kind.is_mapping)
# Their children are found by a key or by the name of a field.
NAMED = frozenset(kind.name for kind in NODE_KINDS if {"keys", "names"} & set(kind.roles))
# The content of these kinds besides children: the last field of a record of a listing.
DETAILS = {
    kind.name: role
    for kind in NODE_KINDS
    for role in kind.roles
    if role in ("aux_data", "default_factory", "maxlen", "meta")
}
