// SPDX-License-Identifier: Apache-2.0
#include "structure/downward_order.h"

#include "structure/cursor.h"

namespace pydag {

DownwardOrder::DownwardOrder(const Structure &structure) : structure_(structure) {
    struct Around {
        uint32_t position, next;  // the number of the next child
    };
    Nesting<Around> around;
    links_.reserve(structure.num_nodes), closed_.reserve(structure.num_nodes);
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        if (around.empty()) links_.push_back({at.refs(), 0, 0});
        else links_.push_back({at.refs(), around.innermost().position, around.innermost().next++});
        if (node.is_anchor) anchors_.push_back(at.position());
        around.add({at.position(), 0}, num_children(node), [&](Around done) { closed_.push_back(done.position); });
    }
}

}  // namespace pydag
