// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C ends a walk, however long it would last.
//
// Python runs the handlers of signals between two instructions of Python code, so a walk runs them itself, every few
// thousand steps. A handler may raise, change the tree, or call the library. Therefore:
//
// A walk that owns all that it uses calls `interruptible_step` at each step; an exception of a handler ends it.
//
// A walk that borrows asks `is_signal_waiting` now and then and gives up if a signal waits. Its caller goes on with a
// walk that owns what it uses.
#pragma once

#include "base/threads.h"

namespace pydag {

namespace detail {
constexpr uint32_t kStepsBetween = 4096;
// One count for all walks, so that many short ones within a long one are interrupted, too.
inline constinit PYDAG_OWN_OF_THREAD uint32_t steps_left = kStepsBetween;
void run_handlers();
}  // namespace detail

// One step of a walk. Runs the handlers of signals every so often, and throws what they raise.
inline void interruptible_step() {
    if (--detail::steps_left == 0) [[unlikely]]
        detail::run_handlers();
}
// The same for a walk that pauses the collector, which is on while a handler runs.
template <class Pause>
void interruptible_step(Pause &pause) {
    if (--detail::steps_left == 0) [[unlikely]]
        pause.while_ended(detail::run_handlers);
}

// Whether a signal has come whose handler hasn't run yet. Runs no Python code. Before 3.13 only Ctrl-C is noticed.
// Always false outside of the main thread, where no handlers run.
bool is_signal_waiting();

// Counts the steps of a walk that borrows.
class LookingSteps {
public:
    static constexpr uint32_t kBetween = 1 << 16;

    // Takes a step. Whether the walk has to give up.
    bool must_give_up() { return --left_ == 0 && must_give_up_now(); }

private:
    bool must_give_up_now();

    uint32_t left_ = kBetween, rounds_ = 0;
};

}  // namespace pydag
