// SPDX-License-Identifier: Apache-2.0
#include "structure/same_subtree.h"

#include "base/interrupt.h"
#include "structure/node_difference.h"

namespace pydag {

bool SameSubtree::test(uint32_t a, uint32_t b) {
    if (known_.has(a, b)) return true;
    to_a_.clear(), to_b_.clear();
    std::vector<std::pair<uint32_t, uint32_t>> pending = {{a, b}};
    while (!pending.empty()) {
        interruptible_step();
        const uint32_t x = structure_.resolve(pending.back().first), y = structure_.resolve(pending.back().second);
        pending.pop_back();
        const bool was_met = to_b_.count(x) || to_a_.count(y);
        if (!pairs_well(x, y)) return false;
        if (was_met) continue;
        if (!are_alike(structure_.node(x), structure_.refs(x), structure_.node(y), structure_.refs(y))) return false;
        uint32_t slot = y + 1;
        structure_.for_each_slot(x, [&](uint32_t own) {
            pending.emplace_back(own, slot);
            slot = structure_.behind(slot);
        });
    }
    known_.add(a, b);
    return true;
}

// Pairs two objects, where they are shared. False if either was paired with a different one before.
bool SameSubtree::pairs_well(uint32_t a, uint32_t b) {
    if (structure_.node(a).is_anchor) {
        const auto [known, is_new] = to_b_.emplace(a, b);
        if (!is_new && known->second != b) return false;
    }
    if (structure_.node(b).is_anchor) {
        const auto [known, is_new] = to_a_.emplace(b, a);
        if (!is_new && known->second != a) return false;
    }
    return true;
}

}  // namespace pydag
