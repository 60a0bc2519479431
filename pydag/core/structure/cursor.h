// SPDX-License-Identifier: Apache-2.0
//
// Walks the nodes of a structure in their order, and in step with them their references, the leaves and the numbers of
// the anchors. `Nesting` tells a walk where subtrees end.
#pragma once

#include "structure/structure.h"

namespace pydag {

class Cursor {
public:
    explicit Cursor(const Structure &structure) : structure_(&structure), refs_(structure.refs) {}
    // From where a subtree begins or ends. `number`: how many anchors lie before it.
    Cursor(const Structure &structure, Extent begin, uint32_t number = 0)
        : structure_(&structure),
          refs_(structure.refs + begin.ref),
          position_(begin.node),
          leaf_(begin.leaf),
          number_(number) {}

    // Whether there is a node here: false behind the last one.
    bool is_at_node() const { return position_ < structure_->num_nodes; }
    Node node() const { return structure_->nodes[position_]; }
    Kind kind() const { return node().kind; }
    PyObject *const *refs() const { return refs_; }  // those of this node
    uint32_t position() const { return position_; }  // of this node among all
    uint32_t leaf() const { return leaf_; }          // how many leaves lie before it
    uint32_t number() const { return number_; }      // how many anchors lie before it: an anchor's own number
    Extent extent() const { return {position_, static_cast<uint32_t>(refs_ - structure_->refs), leaf_}; }

    // To the next node, which is the first child of this one where it has any.
    void step() {
        const Node passed = node();
        refs_ += num_refs(passed);
        leaf_ += passed.is_leaf();
        number_ += passed.is_anchor;
        ++position_;
    }

private:
    const Structure *structure_;
    PyObject *const *refs_;
    uint32_t position_ = 0, leaf_ = 0, number_ = 0;
};

// A child of a node: the item of a `Nesting` for a walk that needs entries.
struct ChildOf {
    Kind kind;              // of the node
    PyObject *const *refs;  // of the node
    uint32_t child = 0;     // its number among the children; of an item, the next one's
    ChildOf pass() { return {kind, refs, child++}; }
};

// The nodes around the current node of a walk, the root first, with an item of the walk for each.
template <class Item>
class Nesting {
public:
    bool empty() const { return open_.empty(); }
    Item &innermost() { return open_.back().item; }
    // How many children the innermost one waits for, the one that is being closed or added included.
    uint32_t num_to_come() const { return to_come_; }

    // To be called for each node, in their order. Calls `close(item)` for each node whose subtree is complete now,
    // children first; the node around it is then the innermost one.
    template <class Close>
    void add(Item item, uint32_t num_children, Close close) {
        if (num_children > 0) {
            open_.push({item, std::exchange(to_come_, num_children)});
            return;
        }
        for (;;) {
            close(item);
            if (--to_come_ > 0 || open_.empty()) return;
            const Open complete = open_.pop();
            to_come_ = complete.to_come_around;
            item = complete.item;
        }
    }
    // The same for a node without children that needs no call of `close`.
    template <class Close>
    void add_closed(Close close) {
        while (--to_come_ == 0 && !open_.empty()) {
            const Open complete = open_.pop();
            to_come_ = complete.to_come_around;
            close(complete.item);
        }
    }

private:
    struct Open {
        Item item;
        uint32_t to_come_around;  // how many children of the node around this one are to come, with this one
    };
    Buffer<Open, 24> open_;
    uint32_t to_come_ = 1;  // outside of the root: the root
};

}  // namespace pydag
