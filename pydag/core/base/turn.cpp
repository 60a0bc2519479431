// SPDX-License-Identifier: Apache-2.0
#include "base/turn.h"

#include "base/error.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace pydag {
namespace {

struct Waiter {
    PyThreadState *thread;
    const Turn *turn;
};
// Guarded by the mutex. Not destroyed: threads may wait while the process ends.
std::vector<Waiter> &waiters() {
    static auto *const all = new std::vector<Waiter>;
    return *all;
}

}  // namespace

// Says, while it lives, that this thread waits for a turn.
class Waiting {
public:
    explicit Waiting(const Turn &turn) : self_(PyThreadState_Get()) {
        const Guard guard(turn_mutex);
        waiters().push_back({self_, &turn});
    }
    ~Waiting() {
        const Guard guard(turn_mutex);
        waiters().erase(std::next(last_of(self_)).base());
    }
    Waiting(const Waiting &) = delete;
    Waiting &operator=(const Waiting &) = delete;

    // Whether what this thread waits for can't come, since the thread that has it waits for this one, or for one that
    // does. Of the threads in a circle the last one to wait finds all others waiting.
    bool closes_circle() const {
        const Guard guard(turn_mutex);
        auto at = last_of(self_);
        for (size_t i = 0; i < waiters().size(); ++i) {
            PyThreadState *const owner = at->turn->owner_.load(std::memory_order_acquire);
            if (owner == self_) return true;
            at = last_of(owner);
            if (at == waiters().rend()) return false;
        }
        return false;
    }

private:
    // The handler of a signal may wait within a wait.
    static std::vector<Waiter>::reverse_iterator last_of(const PyThreadState *thread) {
        return std::find_if(waiters().rbegin(), waiters().rend(),
                            [=](const Waiter &waiter) { return waiter.thread == thread; });
    }

    PyThreadState *const self_;
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
