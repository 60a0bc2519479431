// SPDX-License-Identifier: Apache-2.0
//
// Building a tree makes many containers, none of which is garbage.
#pragma once

#include "base/capi.h"

#include <utility>

namespace pydag {

// While it lives, or until it ends, the collector isn't asked for a run, however many containers are
// made. No Python code may run meanwhile, since that could ask whether the collector is on, or set it. Where threads
// run at the same time, some may: there the collector is left alone, which runs less often than with the GIL.
class BuildPause {
public:
    BuildPause() : was_enabled_(turn_off()) {}
    ~BuildPause() { end(); }
    BuildPause(const BuildPause &) = delete;
    BuildPause &operator=(const BuildPause &) = delete;
    void end() {
        if (std::exchange(was_enabled_, 0)) PyGC_Enable();
    }
    // Calls a function that runs Python code, without a pause; if there was one, there is one again behind it.
    // None begins again where the code has turned the collector off, or where the function throws.
    template <class Function>
    void while_ended(Function function) {
        const int was_paused = was_enabled_;
        end();
        function();
        if (was_paused) was_enabled_ = turn_off();
    }

private:
    static int turn_off() { return kFreeThreaded ? 0 : PyGC_Disable(); }
    int was_enabled_;
};

}  // namespace pydag
