// SPDX-License-Identifier: Apache-2.0
//
// A structure with an index of its subtrees, for walks that go down from any node.
#pragma once

#include "base/interrupt.h"
#include "structure/cursor.h"

#include <algorithm>
#include <vector>

namespace pydag {

struct IndexedStructure {
    // Where the subtree of a node begins and ends, and the number of the first anchor behind it.
    struct Subtree {
        Extent begin, end;
        uint32_t next_number;
    };
    explicit IndexedStructure(const Structure &structure) : structure(structure) {
        Nesting<uint32_t> around;
        for (Cursor at(structure); at.is_at_node();) {
            interruptible_step();
            const Node node = at.node();
            const uint32_t position = at.position();
            if (node.is_anchor) anchors.push_back(position);
            subtrees.push_back({at.extent(), at.extent(), 0});
            at.step();
            around.add(position, num_children(node), [&](uint32_t done) {
                subtrees[done].end = at.extent(), subtrees[done].next_number = at.number();
            });
        }
    }

    Node node(uint32_t position) const { return structure.nodes[position]; }
    PyObject *const *refs(uint32_t position) const { return structure.refs + subtrees[position].begin.ref; }
    uint32_t leaf(uint32_t position) const { return subtrees[position].begin.leaf; }  // how many lie before
    // The position after a node's subtree. A node's first child follows the node; each further child is behind the one
    // before.
    uint32_t behind(uint32_t position) const { return subtrees[position].end.node; }
    // The node that a slot holds: for an alias its anchor.
    uint32_t resolve(uint32_t slot) const { return node(slot).is_alias() ? anchors[node(slot).count] : slot; }
    // The number of the anchor at this position.
    uint32_t number(uint32_t anchor) const {
        return static_cast<uint32_t>(std::lower_bound(anchors.begin(), anchors.end(), anchor) - anchors.begin());
    }
    // Calls `visit(slot)` for each slot of a node, in order.
    template <class Visit>
    void for_each_slot(uint32_t position, Visit visit) const {
        uint32_t slot = position + 1;
        for (uint32_t i = 0; i < num_children(node(position)); ++i, slot = behind(slot)) visit(slot);
    }
    // Pushes `item(slot)` for each slot of a node, so that the first slot is the first to be popped.
    template <class Stack, class Item>
    void push_slots(uint32_t position, Stack &stack, Item item) const {
        const uint32_t count = num_children(node(position));
        auto *next = stack.extend(count) + count;
        for_each_slot(position, [&](uint32_t slot) { *--next = item(slot); });
    }

    const Structure &structure;
    std::vector<Subtree> subtrees;  // by position
    std::vector<uint32_t> anchors;  // the position of each anchor, by its number
};

}  // namespace pydag
