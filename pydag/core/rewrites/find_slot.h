// SPDX-License-Identifier: Apache-2.0
//
// Finds the slot that a path leads to.
#pragma once

#include "structure/structure.h"

#include <vector>

namespace pydag {

// A structure with the place of each of its nodes, so that one can go down from any of them.
struct PlacedStructure {
    explicit PlacedStructure(const Structure &structure);

    Node node(uint32_t position) const { return structure.nodes[position]; }
    PyObject *const *refs(uint32_t position) const { return structure.refs + places[position].begin.ref; }
    uint32_t leaf(uint32_t position) const { return places[position].begin.leaf; }
    // The first child of a node is behind it, each further one behind the one before.
    uint32_t behind(uint32_t position) const { return places[position].end.node; }
    // The node that really stands in a slot: of an alias its anchor.
    uint32_t resolve(uint32_t slot) const { return node(slot).is_alias() ? anchors[node(slot).count] : slot; }

    const Structure &structure;
    std::vector<Place> places;
    std::vector<uint32_t> anchors;  // the position of each anchor, by its number
};

// The position of the slot that a path, a tuple of entries, leads to. Entries are compared by
// identity, then `==`. ValueError where there is none.
uint32_t find_slot(const PlacedStructure &tree, nb::handle path);

}  // namespace pydag
