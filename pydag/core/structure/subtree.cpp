// SPDX-License-Identifier: Apache-2.0
#include "structure/subtree.h"

#include "base/interrupt.h"

namespace pydag {

void SubtreeCopier::copy(uint32_t slot, StructureWriter &writer) {
    Buffer<uint32_t, 48> pending;
    pending.push(slot);
    ++round_;
    while (!pending.empty()) {
        interruptible_step();
        const uint32_t position = source_.resolve(pending.pop());
        const Node node = source_.node(position);
        if (node.is_anchor) {
            Copy &copy = copies_[source_.number(position)];
            if (copy.round == round_) {
                writer.repeat(copy.position);
                continue;
            }
            copy = {round_, writer.position()};
        }
        writer.add(node, source_.refs(position));
        source_.push_slots(position, pending, [](uint32_t child) { return child; });
    }
}

}  // namespace pydag
