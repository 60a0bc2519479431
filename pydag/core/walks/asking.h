// SPDX-License-Identifier: Apache-2.0
//
// What a walk along a known structure needs in order to go on past a node that it has to ask.
//
// Such a walk borrows everything, which ends when Python code runs. So before a node is asked, all that was taken out
// of the open nodes and is still to be visited is owned. The walk itself sees to it that what it knows by address is
// owned, too.
#pragma once

#include "spec/cache.h"
#include "walks/borrowed_frame.h"
#include "walks/node_answers.h"

namespace pydag {

class Asking {
public:
    using Levels = Buffer<BorrowedFrame, 24>;

    Asking(const Structure &structure, NodeAnswers &answers, OtherRefs &other_refs)
        : structure_(structure), answers_(answers), other_refs_(other_refs) {}

    // Keeps an object that is known by address.
    void keep(PyObject *object) { kept_.push_borrowed(object); }
    const RefBuffer<128> &kept() const { return kept_; }
    bool has_asked() const { return has_asked_; }
    // The children of `object`, if it is what the node says, but for its references; else null. Runs Python code.
    PyObject *const *ask(PyObject *object, Node expected, PyObject *const *refs, OpenOptions &options,
                         BorrowedFrame &level, Levels &levels);

private:
    // False if a slot isn't filled.
    bool own(BorrowedFrame &level);
    bool own_all(BorrowedFrame &level, Levels &levels);

    const Structure &structure_;
    NodeAnswers &answers_;
    OtherRefs &other_refs_;
    const uint64_t generation_ = cache_generation();
    RefBuffer<1> waiting_;  // still to be visited, of nodes that were open when a node was asked
    RefBuffer<128> kept_;
    bool has_asked_ = false;
};

}  // namespace pydag
