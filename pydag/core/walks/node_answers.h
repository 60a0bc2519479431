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
        nb::object node, children;  // a tuple; null where the node failed
        Kind kind;
        size_t first_ref;
        uint32_t num_children() const { return static_cast<uint32_t>(PyTuple_GET_SIZE(children.ptr())); }
    };

    bool empty() const { return answers_.empty(); }
    // Opens a node. Null if that failed: then it must be the last one.
    const Answer *ask(PyObject *object, const TypeInfo &info, OpenOptions &options);
    // They stay where they are.
    static PyObject *const *children(const Answer &answer) { return &PyTuple_GET_ITEM(answer.children.ptr(), 0); }
    PyObject *const *refs(const Answer &answer) const { return refs_.data() + answer.first_ref; }

    // As `open_node`, for the walk that comes after: from what was said, if this node was asked next.
    uint32_t open(PyObject *object, const TypeInfo &info, OpenOptions &options, Stack &stack, Refs &refs);

private:
    void add(PyObject *object, const TypeInfo &info, OpenOptions &options);
    bool is_of(const Answer &answer, PyObject *object, const TypeInfo &info) const;

    std::vector<Answer> answers_;
    size_t next_ = 0;             // of those that are given again
    Refs refs_;                   // of a callback at least the registration, even if it failed
    std::exception_ptr failure_;  // what the last one raised instead
};

}  // namespace pydag
