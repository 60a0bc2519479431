// SPDX-License-Identifier: Apache-2.0
#include "structure/way.h"

namespace pydag {

Steps steps_along(const PlacedStructure &structure, const std::vector<uint32_t> &slots) {
    Steps way = steps_to(structure.structure, {slots.front()}).front();
    for (size_t i = 1; i < slots.size(); ++i) {
        const uint32_t position = structure.resolve(slots[i - 1]);
        uint32_t child = 0, found = 0;
        structure.for_each_slot(position, [&](uint32_t slot) {
            if (slot == slots[i]) found = child;
            ++child;
        });
        way.push_back(step_of(structure.node(position).kind, structure.refs(position), found));
    }
    return way;
}

}  // namespace pydag
