// SPDX-License-Identifier: Apache-2.0
//
// The leaves that a walk along a known structure has found: new references, which are released again unless
// `hand_over` is called, when all were found.
#pragma once

#include "base/buffer.h"

namespace pydag {

class TakenLeaves {
public:
    explicit TakenLeaves(Leaves &leaves, uint32_t count) : leaves_(leaves) {
        leaves.reserve(count);
        first_ = next_ = leaves.data();
    }
    TakenLeaves(const TakenLeaves &) = delete;
    TakenLeaves &operator=(const TakenLeaves &) = delete;
    ~TakenLeaves() {
        while (next_ > first_) decref(*--next_);
    }
    void add(PyObject *leaf) { *next_++ = incref(leaf); }
    size_t size() const { return static_cast<size_t>(next_ - first_); }
    PyObject *const *data() const { return first_; }
    void hand_over() {
        leaves_.add_written(static_cast<size_t>(next_ - first_));
        next_ = first_;
    }

private:
    Leaves &leaves_;
    PyObject **first_, **next_;
};

}  // namespace pydag
