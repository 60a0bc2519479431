// SPDX-License-Identifier: Apache-2.0
//
// Nodes whose children Python code alone can find, asked by a walk along a known structure; and their answers.
//
// Such a walk borrows everything, which ends when Python code runs. So before a node is asked, everything that was
// taken out of the open nodes and is still to be visited is owned. The walk itself sees to it that the objects that it
// knows by address are owned, too.
//
// The walk may have to give up after it has asked some nodes. The walk that takes its place meets them in the same
// order, and gets the answers from here: no flatten function is called twice.
#pragma once

#include "nodes/open.h"
#include "spec/cache.h"

#include <cstdint>
#include <exception>
#include <vector>

namespace pydag {

// The state of a walk within an open node, for a walk that borrows its objects.
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

class NodeAnswers {
public:
    using Levels = Buffer<BorrowedFrame, 24>;

    // The references in which answers differ from the structure.
    OtherRefs other_refs;

    bool empty() const { return answers_.empty(); }
    // Keeps an object that is known by address.
    void keep(PyObject *object) { kept_.push_borrowed(object); }
    // The children of `object`, if it is what the node of the structure says, but for its references; else null. Runs
    // Python code.
    PyObject *const *ask(const Structure &structure, PyObject *object, Node expected, PyObject *const *refs,
                         OpenOptions &options, BorrowedFrame &level, Levels &levels);

    // As `open_node`, for the walk that comes after: by the answer, if this node was asked next.
    uint32_t open(PyObject *object, const TypeInfo &info, OpenOptions &options, Stack &stack, Refs &refs);

private:
    struct Answer {
        nb::object node, children;  // a tuple; null where the node failed
        Kind kind;
        size_t first_ref;
        uint32_t num_children() const { return static_cast<uint32_t>(PyTuple_GET_SIZE(children.ptr())); }
        PyObject *const *items() const { return &PyTuple_GET_ITEM(children.ptr(), 0); }  // they stay where they are
    };
    // Opens a node. False if that failed: then it must be the last one.
    bool add(PyObject *object, const TypeInfo &info, OpenOptions &options);
    PyObject *const *refs(const Answer &answer) const { return refs_.data() + answer.first_ref; }
    bool own_all(const Structure &structure, BorrowedFrame &level, Levels &levels);

    std::vector<Answer> answers_;
    size_t next_ = 0;             // of those that are given again
    Refs refs_;                   // of a callback at least the registration, even if it failed
    std::exception_ptr failure_;  // the exception of the last node, if it failed
    RefBuffer<1> waiting_;        // still to be visited, of nodes that were open when a node was asked
    RefBuffer<128> kept_;
};

}  // namespace pydag
