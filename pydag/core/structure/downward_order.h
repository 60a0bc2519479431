// SPDX-License-Identifier: Apache-2.0
//
// The nodes of a structure in an order in which each comes after its parent, and an anchor also after its aliases. So
// information that is handed down a DAG has arrived by all paths when it is a node's turn, in one step for each edge.
#pragma once

#include "base/interrupt.h"
#include "structure/cursor.h"

#include <vector>

namespace pydag {

class DownwardOrder {
public:
    struct Link {
        PyObject *const *refs;  // those of the node
        uint32_t parent;        // its position; the root is its own parent
        uint32_t child;         // which child of the parent the node is
    };

    explicit DownwardOrder(const Structure &structure) : structure_(structure) {
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

    const Link &link(uint32_t position) const { return links_[position]; }
    // Calls `visit(position, anchor)` for each node in this order. `anchor`: for an alias the position of its
    // anchor, for other nodes their own.
    template <class Visit>
    void run(Visit visit) const {
        for (auto next = closed_.rbegin(); next != closed_.rend(); ++next) {
            interruptible_step();
            const Node node = structure_.nodes[*next];
            visit(*next, node.is_alias() ? anchors_[node.count] : *next);
        }
    }

private:
    const Structure &structure_;
    std::vector<Link> links_;        // by position
    std::vector<uint32_t> anchors_;  // their positions, by number
    std::vector<uint32_t> closed_;   // positions in the order in which the nodes end
};

}  // namespace pydag
