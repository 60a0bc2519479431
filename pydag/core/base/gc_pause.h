// SPDX-License-Identifier: Apache-2.0
//
// Keeps the collector from running.
#pragma once

#include "base/capi.h"

#include <utility>

namespace pydag {

// While it lives, or until it ends, no collection of garbage starts by itself. No Python code may run meanwhile, since
// that could ask whether the collector is on, or set it.
template <bool kIsNeeded>
class CollectorPause {
public:
    CollectorPause() : was_enabled_(turn_off()) {}
    ~CollectorPause() { end(); }
    CollectorPause(const CollectorPause &) = delete;
    CollectorPause &operator=(const CollectorPause &) = delete;
    void end() {
        if (kIsNeeded && std::exchange(was_enabled_, 0)) PyGC_Enable();
    }
    // Interrupts the pause for a function that runs Python code. The pause doesn't go on if that code turned the
    // collector off, or if it throws.
    template <class Function>
    void while_ended(Function function) {
        const int was_paused = was_enabled_;
        end();
        function();
        if (was_paused) was_enabled_ = turn_off();
    }

private:
    static int turn_off() { return kIsNeeded ? PyGC_Disable() : 0; }
    int was_enabled_;
};

// For what makes objects while it looks into others: a collection would run finalizers.
using GcPause = CollectorPause<kCollectsWithinCalls>;
// For building a tree: it makes many containers, none of which is garbage. Where threads run at the same time, Python
// code may run meanwhile, so there the collector is left alone; it runs less often than with the GIL.
using BuildPause = CollectorPause<!kFreeThreaded>;

}  // namespace pydag
