// SPDX-License-Identifier: Apache-2.0
//
// A flag that is set once, from any thread, and that several objects look at.
#pragma once

#include "base/box.h"

#include <atomic>

namespace pydag {

struct Flag {
    std::atomic<bool> is_set = false;
    auto python_refs() { return std::tie(); }
};
using FlagBox = Box<Flag>;

void make_flag_type();

}  // namespace pydag
