// SPDX-License-Identifier: Apache-2.0
//
// Counts a function of the core as one frame of Python. Otherwise a callback that calls the library, which
// calls the callback again, would use up the C stack before it reaches sys.getrecursionlimit().
#pragma once

#include "base/error.h"

namespace pydag {

class FrameCount {
public:
    FrameCount() : remaining_(remaining_frames(PyThreadState_Get())) {
        if (remaining_ <= 0) fail(PyExc_RecursionError, "maximum recursion depth exceeded");
        --remaining_;
    }
    ~FrameCount() { ++remaining_; }
    FrameCount(const FrameCount &) = delete;
    FrameCount &operator=(const FrameCount &) = delete;

private:
    // Under the name that this version of Python has for it.
    template <class Thread>
    static int &remaining_frames(Thread *thread) {
        if constexpr (requires { thread->py_recursion_remaining; }) return thread->py_recursion_remaining;
        else return thread->recursion_remaining;
    }
    int &remaining_;
};

}  // namespace pydag
