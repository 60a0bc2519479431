// SPDX-License-Identifier: Apache-2.0
//
// Where a walk that borrows is within an open node.
#pragma once

#include "base/capi.h"

namespace pydag {

struct BorrowedFrame {
    // Its children from the next one on, borrowed; null where a list isn't filled yet.
    PyObject *const *next, *const *end;
    // Whether an object that only this node holds can be met only once.
    bool owns_slots;
    bool is_owned;           // whether the walk itself owns the children
    bool leaves_are_values;  // whether its leaves have no identity
    uint32_t node;           // its position in the structure

    // Whether no other slot can hold the child: its only reference is that of the slot of this node.
    bool is_only_way_to(PyObject *child) const { return owns_slots && has_references(child, 1); }
};

}  // namespace pydag
