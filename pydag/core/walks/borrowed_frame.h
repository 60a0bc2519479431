// SPDX-License-Identifier: Apache-2.0
//
// The state of a walk within an open node, for a walk that borrows its objects.
#pragma once

#include "base/capi.h"

#include <cstdint>

namespace pydag {

struct BorrowedFrame {
    // Its children from the next one on, borrowed; null where a list isn't filled yet.
    PyObject *const *next, *const *end;
    // Flags, and above them the position of the node. Both are in one word: a processor stalls when it reads in one
    // access, as pushing a frame does, a word that was written in parts.
    uint64_t state;

    static constexpr uint64_t kOwnsSlots = 1;        // an object that only this node holds can be met only once
    static constexpr uint64_t kIsOwned = 2;          // the walk itself owns the children
    static constexpr uint64_t kLeavesAreValues = 4;  // its leaves have no identity
    static uint64_t state_of(bool owns_slots, bool leaves_are_values, uint32_t node = 0) {
        return (owns_slots ? kOwnsSlots : 0) | (leaves_are_values ? kLeavesAreValues : 0) | uint64_t{node} << 32;
    }
    bool owns_slots() const { return state & kOwnsSlots; }
    bool is_owned() const { return state & kIsOwned; }
    bool leaves_are_values() const { return state & kLeavesAreValues; }
    uint32_t node() const { return static_cast<uint32_t>(state >> 32); }

    // Whether no other slot can hold the child: the slot of this node has its only reference.
    bool is_only_way_to(PyObject *child) const { return owns_slots() && has_references(child, 1); }
};

}  // namespace pydag
