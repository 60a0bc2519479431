// SPDX-License-Identifier: Apache-2.0
//
// Goes through a structure, children first. The caller keeps its results on a stack of its own: when a node
// is visited, the results of its children are the last ones on that stack.
#pragma once

#include "base/interrupt.h"
#include "structure/cursor.h"

namespace pydag {

struct VisitedNode {
    PyObject *const *refs;
    uint32_t position;
    uint32_t number;  // its own, if it is an anchor
};

// Calls `visitor.visit(VisitedNode)` at each node and `visitor.visit_alias(number)` at each alias.
template <class Visitor>
void visit_children_first(const Structure &structure, Visitor &visitor) {
    Nesting<VisitedNode> around;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        around.add({at.refs(), at.position(), at.number()}, num_children(node), [&](const VisitedNode &done) {
            const Node complete = structure.nodes[done.position];
            if (complete.is_alias()) visitor.visit_alias(complete.count);
            else visitor.visit(done);
        });
    }
}

// The result for each anchor, by the anchor's number.
class AnchorMemo {
public:
    explicit AnchorMemo(const Structure &structure) {
        PyObject **const slots = memo_.extend(structure.num_shared);
        for (uint32_t i = 0; i < structure.num_shared; ++i) slots[i] = incref(Py_None);
    }
    PyObject *operator[](uint32_t number) const { return memo_[number]; }
    void set(uint32_t number, nb::handle object) { memo_.replace(number, nb::borrow(object)); }

private:
    RefBuffer<16> memo_;
};

}  // namespace pydag
