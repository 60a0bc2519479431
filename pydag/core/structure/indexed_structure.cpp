// SPDX-License-Identifier: Apache-2.0
#include "structure/indexed_structure.h"

#include <algorithm>

namespace pydag {

IndexedStructure::IndexedStructure(const Structure &structure)
    : structure(structure), subtrees(find_subtrees(structure, Which::kAllNodes)) {
    anchors.reserve(structure.num_shared);
    for (uint32_t i = 0; i < structure.num_nodes; ++i)
        if (structure.nodes[i].is_anchor) anchors.push_back(i);
}

uint32_t IndexedStructure::number(uint32_t anchor) const {
    return static_cast<uint32_t>(std::lower_bound(anchors.begin(), anchors.end(), anchor) - anchors.begin());
}

}  // namespace pydag
