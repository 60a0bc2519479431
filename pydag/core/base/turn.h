// SPDX-License-Identifier: Apache-2.0
//
// A right that one thread at a time has, while Python code runs. Other threads wait for it; in the main thread the
// handlers of signals run meanwhile. Of threads that would wait for one another for ever, the last one gets an error.
#pragma once

#include "base/threads.h"

namespace pydag {

class Turn {
public:
    // Whether this thread has it.
    bool is_own() const {
        const PyThreadState *const owner = owner_.load(std::memory_order_relaxed);
        return owner && owner == PyThreadState_Get();
    }
    // Raises RuntimeError, with this text, if the thread that has it waits for this one; and what the handler of a
    // signal raises.
    void begin(const char *circle) {
        if (!try_to_begin()) [[unlikely]]
            wait(circle);
    }
    void end() { owner_.store(nullptr, std::memory_order_release); }

private:
    friend class Waiting;
    void wait(const char *circle);
    bool try_to_begin() {
        PyThreadState *nobody = nullptr;
#ifdef Py_GIL_DISABLED
        return owner_.compare_exchange_strong(nobody, PyThreadState_Get(), std::memory_order_acquire);
#else
        if (owner_.load(std::memory_order_relaxed) != nobody) return false;
        owner_.store(PyThreadState_Get(), std::memory_order_relaxed);
        return true;
#endif
    }

    std::atomic<PyThreadState *> owner_ = nullptr;
};

}  // namespace pydag
