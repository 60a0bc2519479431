// SPDX-License-Identifier: Apache-2.0
//
// What a compiled function is called for at the moment.
//
// JAX asks for the names of a function's arguments when it traces, and doesn't say of which call. The function gets
// the leaves alone, one by one; so the key of the innermost call of this thread says which structure they are of.
#pragma once

#include "base/capi.h"

namespace pydag {

class RunningKey {
public:
    // `key`: borrowed, as long as this lives.
    explicit RunningKey(PyObject *key) : before_(current_) { current_ = key; }
    ~RunningKey() { current_ = before_; }
    RunningKey(const RunningKey &) = delete;
    RunningKey &operator=(const RunningKey &) = delete;
    // None where nothing is called.
    static nb::object current() { return current_ ? nb::borrow(current_) : nb::none(); }

private:
    // With the GIL, too, each thread has its own: threads take turns within calls.
    static inline constinit thread_local PyObject *current_ = nullptr;
    PyObject *const before_;
};

}  // namespace pydag
