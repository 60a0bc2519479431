// SPDX-License-Identifier: Apache-2.0
//
// How calls of one structure go to a compiled function.
#pragma once

#include "base/box.h"

#include <cstdint>
#include <vector>

namespace pydag {

// Made in Python at the first call, then read here at each. Positions are among all leaves of the structure.
struct CallPlan {
    using Positions = std::vector<uint32_t>;

    // Which calls it is for.
    nb::tuple classes;           // the class of each leaf
    Positions static_positions;  // of the leaves that JAX doesn't see
    nb::tuple statics;           // these leaves: a call must have these very objects

    // What is called.
    nb::object function;  // of JAX: takes the traced leaves, contents of refs in their places
    Positions traced;     // in the order in which they are passed
    Positions donated;    // some of these, which it may reuse
    bool in_lists;        // whether it takes two lists, those that are kept and those that are donated; else one by one
    nb::object copy;      // of a donated leaf that may be at several places; None where none can be

    // Refs.
    Positions refs;     // of all of them
    Positions written;  // of those whose new contents the function returns beside its result
    bool has_devices;   // whether there are several, so that a content may be on more than one
    nb::tuple types;    // of the refs of the last call, which needn't be looked at again
    Positions kept;     // the traced ones that aren't donated

    auto python_refs() { return std::tie(classes, statics, function, copy, types); }
};
using CallPlanBox = Box<CallPlan>;

// TypeError where the parts don't belong together; IndexError where there are too few leaves for the positions;
// ValueError for positions of refs that aren't in order.
nb::object make_call_plan(CallPlan plan);

}  // namespace pydag
