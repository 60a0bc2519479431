// SPDX-License-Identifier: Apache-2.0
#include "structure/descent.h"

#include <algorithm>

namespace pydag {

Steps Descent::path_to(const Visit &visit) const {
    std::vector<uint32_t> slots = {visit.slot};
    for (uint32_t at = visit.parent; at != kNoParent; at = trail_[at].parent) slots.push_back(trail_[at].slot);
    std::reverse(slots.begin(), slots.end());
    Steps path = steps_to(structure_.structure, slots.front());
    for (size_t i = 1; i < slots.size(); ++i) {
        const uint32_t position = structure_.resolve(slots[i - 1]);
        uint32_t child = 0, found = 0;
        structure_.for_each_slot(position, [&](uint32_t slot) {
            if (slot == slots[i]) found = child;
            ++child;
        });
        path.push_back(step_of(structure_.node(position).kind, structure_.refs(position), found));
    }
    return path;
}

}  // namespace pydag
