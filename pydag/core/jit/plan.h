// SPDX-License-Identifier: Apache-2.0
//
// How calls of one structure go to a compiled function.
#pragma once

#include "base/box.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace pydag {

// Made in Python at the first call, then read here at each. Positions are among all leaves of the structure.
struct CallPlan {
    using Positions = std::vector<uint32_t>;

    // Which calls it is for.
    nb::tuple classes;           // the class of each leaf
    Positions static_positions;  // of the leaves that JAX doesn't see
    nb::tuple statics;           // these leaves: a call must have these very objects
    nb::tuple watched;           // functions without arguments: all must still return true

    // What JAX's function is called with.
    nb::object function;  // takes contents of refs, or spread leaves; None: the function of the CallPlans
    nb::object key;       // hashable: what it is compiled for; None: `function` takes the leaves one by one,
                          // contents of refs in their places, and is for this key alone
    nb::object tag;       // an object that belongs to the structure
    std::optional<Positions> donated;  // without it, the tag alone is passed
    std::optional<Positions> kept;     // without it, all leaves are
    nb::object copy;                   // of a donated leaf that may be at several places; None where none can be
    bool is_spread;                    // whether it takes the kept leaves one by one, and no tag

    // Refs, for a function that takes their contents.
    Positions refs;     // of all of them
    Positions written;  // of those whose new contents the function returns
    bool has_devices;   // whether there are several, so that a content may be on more than one
    nb::tuple types;    // of the refs of the last call, which needn't be looked at again

    auto python_refs() { return std::tie(classes, statics, watched, function, key, tag, copy, types); }
    // Whether the function returns more than its result: new contents of refs, if there are any.
    bool has_extras() const { return !function.is_none() && !is_spread; }
};
using CallPlanBox = Box<CallPlan>;

// TypeError where the parts don't belong together; IndexError where there are too few leaves for the positions;
// ValueError for positions of refs that aren't in order.
nb::object make_call_plan(CallPlan plan);

}  // namespace pydag
