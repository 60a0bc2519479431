// SPDX-License-Identifier: Apache-2.0
#include "structure/prefix.h"

#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/indexed_structure.h"
#include "structure/namespaces.h"
#include "structure/node_fit.h"

#include <algorithm>

namespace pydag {
namespace {

enum class Found { kPrefix, kNoPrefix, kOtherOrder };

// The test if `b` shares nothing: goes through both structures once, in step. `kOtherOrder`: dicts have their keys in
// different orders, so the slots of `b` have to be found by an index.
Found test_in_step(const Structure &a, const Structure &b, bool strict) {
    std::vector<uint32_t> order;
    Cursor other(b);
    for (Cursor at(a); at.is_at_node(); at.step()) {
        interruptible_step();
        if (at.node().is_alias()) return Found::kNoPrefix;
        if (at.node().is_leaf()) {
            strict = strict && other.node().is_leaf();  // a leaf that is replaced by a node is enough
            for (uint32_t num_slots = 1; num_slots > 0; --num_slots, other.step())
                num_slots += num_children(other.node());
            continue;
        }
        if (other.node().is_leaf()) return Found::kNoPrefix;
        if (fit_node(at.node(), at.refs(), other.node(), other.refs(), order) != Fit::kFits) return Found::kNoPrefix;
        if (!order.empty()) return Found::kOtherOrder;
        other.step();
    }
    return strict ? Found::kNoPrefix : Found::kPrefix;
}

class PrefixTest {
public:
    PrefixTest(const Structure &a, const Structure &b) : a_(a), b_(b), is_taken_(b.num_nodes) {}

    bool run(bool strict) {
        slots_.push(0);
        for (Cursor at(a_); at.is_at_node(); at.step()) {
            interruptible_step();
            if (!fits(at, b_.resolve(slots_.pop()))) return false;
        }
        return !strict || is_strict_;
    }

private:
    // Whether the node of `a` fits the object of `b` at this position.
    bool fits(const Cursor &at, uint32_t position) {
        const Node node = at.node(), other = b_.node(position);
        if (node.is_alias()) return anchors_[node.count] == position;
        if (node.is_anchor) anchors_.push(position);
        // Two slots hold two objects in `a` and one object in `b`.
        if (other.is_anchor && is_taken_[position]) is_strict_ = true;
        is_taken_[position] = true;
        if (node.is_leaf()) {
            is_strict_ = is_strict_ || !other.is_leaf();
            return true;
        }
        if (other.is_leaf()) return false;
        if (fit_node(node, at.refs(), other, b_.refs(position), order_) != Fit::kFits) return false;
        push_slots(position);
        return true;
    }

    // Pushes the slots of a node of `b` in the order of the slots of `a`.
    void push_slots(uint32_t position) {
        if (order_.empty()) return b_.push_slots(position, slots_, [](uint32_t slot) { return slot; });
        std::vector<uint32_t> slots;
        b_.for_each_slot(position, [&](uint32_t slot) { slots.push_back(slot); });
        for (auto next = order_.rbegin(); next != order_.rend(); ++next) slots_.push(slots[*next]);
    }

    const Structure &a_;
    const IndexedStructure b_;
    Buffer<uint32_t, 48> slots_;    // of `b`, still to be visited
    Buffer<uint32_t, 16> anchors_;  // the object of `b` that goes with each anchor of `a`, by its number
    std::vector<bool> is_taken_;    // whether an object of `b` goes with an object of `a` already
    std::vector<uint32_t> order_;
    bool is_strict_ = false;
};

}  // namespace

bool is_prefix(const Structure &a, const Structure &b, bool strict) {
    if (a.none_is_leaf != b.none_is_leaf || !are_compatible(a.namespace_, b.namespace_)) return false;
    if (b.num_shared == 0) {
        const Found found = test_in_step(a, b, strict);
        if (found != Found::kOtherOrder) return found == Found::kPrefix;
    }
    return PrefixTest(a, b).run(strict);
}

}  // namespace pydag
