// SPDX-License-Identifier: Apache-2.0
//
// Copies a subtree as a structure of its own. An alias whose anchor lies outside becomes the anchor, and an
// object that only one slot of the copy holds is no longer shared.
#pragma once

#include "structure/indexed_structure.h"
#include "structure/writer.h"

namespace pydag {

class SubtreeCopier {
public:
    explicit SubtreeCopier(const IndexedStructure &source) : source_(source), copies_(source.anchors.size()) {}

    // Writes what a slot of the source holds. Two calls share nothing: each writes its own anchors.
    void copy(uint32_t slot, StructureWriter &writer);

private:
    struct Copy {
        uint32_t round = 0, position = 0;
    };
    const IndexedStructure &source_;
    std::vector<Copy> copies_;  // of each anchor, by its number
    uint32_t round_ = 0;
};

}  // namespace pydag
