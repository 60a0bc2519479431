// SPDX-License-Identifier: Apache-2.0
#include "base/turn.h"

#include "base/error.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

namespace pydag {
namespace {

// The turn for which each thread waits. Guarded by the mutex. Not destroyed: threads may wait while the process ends.
std::map<PyThreadState *, const Turn *> &waits() {
    static auto *const all = new std::map<PyThreadState *, const Turn *>;
    return *all;
}

}  // namespace

// Says, while it lives, that this thread waits for a turn. The handler of a signal may wait within a wait.
class Waiting {
public:
    explicit Waiting(const Turn &turn) : self_(PyThreadState_Get()), turn_(&turn) {
        const Guard guard(turn_mutex);
        before_ = std::exchange(waits()[self_], turn_);
    }
    ~Waiting() {
        const Guard guard(turn_mutex);
        if (before_) waits()[self_] = before_;
        else waits().erase(self_);
    }
    Waiting(const Waiting &) = delete;
    Waiting &operator=(const Waiting &) = delete;

    // Whether the thread that has the turn waits for this one, or for a thread that does. Of the threads in a circle
    // the last one to wait finds all others waiting.
    bool closes_circle() const {
        const Guard guard(turn_mutex);
        const Turn *at = turn_;
        for (size_t i = 0; at && i < waits().size(); ++i) {
            PyThreadState *const owner = at->owner_.load(std::memory_order_acquire);
            if (owner == self_) return true;
            const auto found = waits().find(owner);
            at = found == waits().end() ? nullptr : found->second;
        }
        return false;
    }

private:
    PyThreadState *const self_;
    const Turn *const turn_, *before_;
};

void Turn::wait(const char *circle) {
    using namespace std::chrono_literals;
    const Waiting waiting(*this);
    if (waiting.closes_circle()) fail(PyExc_RuntimeError, "%s", circle);
    for (auto pause = 20us; !try_to_begin(); pause = std::min(2 * pause, std::chrono::microseconds(5ms))) {
        Py_BEGIN_ALLOW_THREADS;
        std::this_thread::sleep_for(pause);
        Py_END_ALLOW_THREADS;
        checked(PyErr_CheckSignals());
    }
}

}  // namespace pydag
