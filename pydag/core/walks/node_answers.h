// SPDX-License-Identifier: Apache-2.0
//
// What the nodes said that had to be asked: whose children Python code alone can find.
//
// A walk that follows a known structure may have to give up after it has asked some nodes. The walk that takes its
// place meets them in the same order, and gets the answers from here: no flatten function is called twice.
#pragma once

#include "nodes/open.h"

#include <exception>
#include <vector>

namespace pydag {

class NodeAnswers {
public:
    struct Answer {
        nb::object node, registration;
        Kind kind;
        uint32_t num_children;
        size_t first_child, first_ref;
        std::exception_ptr failure = {};  // what was raised instead
    };

    // Opens a node. Null if that failed, or if there are more than `room` children altogether: up to that number
    // they stay where they are.
    const Answer *ask(PyObject *object, const TypeInfo &info, OpenOptions &options, size_t room);
    bool has_child_at(PyObject *const *slot) const {
        return slot >= children_.data() && slot < children_.data() + children_.size();
    }
    PyObject *const *children(const Answer &answer) const { return children_.data() + answer.first_child; }
    PyObject *const *refs(const Answer &answer) const { return refs_.data() + answer.first_ref; }

    // As `open_node`, for the walk that comes after: from what was said, if this node was asked next.
    uint32_t open(PyObject *object, const TypeInfo &info, OpenOptions &options, Stack &stack, Refs &refs);

private:
    std::vector<Answer> answers_;
    size_t next_ = 0;        // of those that are given again
    RefBuffer<1> children_;  // in the order of the structure
    Refs refs_;
};

}  // namespace pydag
