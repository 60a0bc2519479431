// SPDX-License-Identifier: Apache-2.0
//
// Whether what stands at two places of one structure has the same structure, sharing included.
#pragma once

#include "structure/placed_structure.h"

#include <set>
#include <unordered_map>

namespace pydag {

class SameSubtree {
public:
    explicit SameSubtree(const PlacedStructure &structure) : structure_(structure) {}

    // As comparing the two subtrees as structures of their own would say. What was found to be the
    // same is remembered. May run the keys' and the aux_data's own `==`.
    bool test(uint32_t a, uint32_t b);

private:
    bool pairs_well(uint32_t a, uint32_t b);

    const PlacedStructure &structure_;
    std::set<std::pair<uint32_t, uint32_t>> known_;
    // Of the shared objects that were met in either subtree the one in the other.
    std::unordered_map<uint32_t, uint32_t> to_b_, to_a_;
};

}  // namespace pydag
