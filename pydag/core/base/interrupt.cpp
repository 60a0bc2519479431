// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

namespace pydag {
namespace {

// CPython's own mark on the state of the main thread, since 3.13. It is no part of the API: if its bits get other
// meanings, walks give up for nothing or notice no signal, and tests fail.
constexpr uintptr_t kSignalsPending = 2;
template <class Thread>
constexpr bool has_mark = requires(Thread thread) { thread.eval_breaker; };

template <class Thread>
bool is_marked(const Thread *thread) {
    if constexpr (has_mark<Thread>) return load_shared(thread->eval_breaker) & kSignalsPending;
    if (!PyOS_InterruptOccurred()) return false;
    PyErr_SetInterrupt();  // the question has taken the signal back
    return true;
}

}  // namespace

bool is_signal_waiting() { return is_marked(PyThreadState_Get()); }

bool LookingSteps::must_give_up_now() {
    left_ = kBetween;
    // Where only Ctrl-C can be noticed, a walk of about a second gives up for the sake of other signals.
    constexpr uint32_t kMostRounds = (1 << 26) / kBetween;
    if (!has_mark<PyThreadState> && ++rounds_ == kMostRounds) return true;
    return is_signal_waiting();
}

void detail::run_handlers() {
    steps_left = kStepsBetween;
    // PyErr_CheckSignals may also collect garbage, which walks would cause again and again.
    if (has_mark<PyThreadState> && !is_signal_waiting()) return;
    checked(PyErr_CheckSignals());
}

}  // namespace pydag
