// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

namespace pydag {

bool is_signal_waiting() {
#if PY_VERSION_HEX >= 0x030D0000
    // CPython's own mark on the main thread's state, the same from 3.13 to 3.15. It is no part of the API: a
    // version that moves it makes walks slower (they give up for nothing) or deaf, but never wrong. The tests
    // of interruption notice both.
    constexpr uintptr_t kSignalsPending = 2;
    return PyThreadState_Get()->eval_breaker & kSignalsPending;
#else
    if (!PyOS_InterruptOccurred()) return false;
    PyErr_SetInterrupt();  // the question has taken the signal back
    return true;
#endif
}

bool LookingSteps::must_give_up_now() {
    left_ = kBetween;
#if PY_VERSION_HEX < 0x030D0000
    // Other signals than Ctrl-C can't be told here: a walk that goes over more than fits in a second gives up
    // for the sake of those.
    constexpr uint32_t kMostRounds = (1 << 26) / kBetween;
    if (++rounds_ == kMostRounds) return true;
#endif
    return is_signal_waiting();
}

void detail::run_handlers() {
    steps_left = kStepsBetween;
#if PY_VERSION_HEX >= 0x030D0000
    // PyErr_CheckSignals also collects garbage where that is due. Walks make many objects, and would do so
    // again and again.
    if (!is_signal_waiting()) return;
#endif
    checked(PyErr_CheckSignals());
}

}  // namespace pydag
