// SPDX-License-Identifier: Apache-2.0
#include "structure/placed_structure.h"

#include <algorithm>

namespace pydag {

PlacedStructure::PlacedStructure(const Structure &structure)
    : structure(structure), places(find_places(structure, Which::kAllNodes)) {
    anchors.reserve(structure.num_shared);
    for (uint32_t i = 0; i < structure.num_nodes; ++i)
        if (structure.nodes[i].is_anchor) anchors.push_back(i);
}

uint32_t PlacedStructure::number(uint32_t anchor) const {
    return static_cast<uint32_t>(std::lower_bound(anchors.begin(), anchors.end(), anchor) - anchors.begin());
}

}  // namespace pydag
