// SPDX-License-Identifier: Apache-2.0
//
// Copies what lies below a node, as a structure of its own: an alias whose anchor lies outside
// becomes the anchor, and what is left with one slot is shared no more.
#pragma once

#include "structure/placed_structure.h"
#include "structure/writer.h"

namespace pydag {

class SubtreeCopier {
public:
    explicit SubtreeCopier(const PlacedStructure &source) : source_(source), copies_(source.anchors.size()) {}

    // Writes what stands in a slot of the source. Each call knows nothing of the one before.
    void copy(uint32_t slot, StructureWriter &writer);

private:
    struct Copy {
        uint32_t round = 0, position = 0;
    };
    const PlacedStructure &source_;
    std::vector<Copy> copies_;  // of each anchor, by its number
    uint32_t round_ = 0;
};

}  // namespace pydag
