// SPDX-License-Identifier: Apache-2.0
//
// Whether two subtrees of one structure have the same structure, sharing included.
#pragma once

#include "base/pair_set.h"
#include "structure/indexed_structure.h"

#include <unordered_map>

namespace pydag {

class SameSubtree {
public:
    explicit SameSubtree(const IndexedStructure &structure) : structure_(structure) {}

    // Whether the subtrees at `a` and `b` are equal as structures of their own. Pairs that are equal are
    // remembered. May run the `==` of keys and aux_data.
    bool test(uint32_t a, uint32_t b);

private:
    bool pairs_well(uint32_t a, uint32_t b);

    const IndexedStructure &structure_;
    PairSet<uint32_t, uint32_t> known_;
    // For each shared object that was met in one subtree: the object of the other subtree that goes with it.
    std::unordered_map<uint32_t, uint32_t> to_b_, to_a_;
};

}  // namespace pydag
