// SPDX-License-Identifier: Apache-2.0
//
// A compiled function, and what is remembered of its calls.
#pragma once

#include "base/box.h"
#include "base/threads.h"
#include "jit/static_leaves.h"
#include "spec/cache.h"
#include "walks/options.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace pydag {

// How calls of one structure go to a compiled function: made in Python at the first call, then read here at each.
// Positions are among all leaves of the structure.
struct CallPlan {
    using Positions = std::vector<uint32_t>;

    // Which calls it is for.
    nb::tuple classes;           // the class of each leaf
    Positions static_positions;  // of the leaves that JAX doesn't see, and of numbers of which others may be static
    nb::tuple statics;           // these leaves: a call must have these very objects

    // What is called.
    nb::object function;  // of JAX: takes the traced leaves, contents of refs in their places
    Positions traced;     // in the order in which they are passed
    Positions donated;    // some of these, which it may reuse
    bool in_lists;        // whether it takes two lists, kept and donated leaves; else one by one
    nb::object copy;      // of a donated leaf that may be at several places; None if none can be

    // Refs.
    Positions refs;     // all of them
    Positions written;  // those whose new contents the function returns beside its result
    bool has_devices;   // whether there are several, so that a content may be on more than one
    nb::tuple types;    // of the refs of the last call, which needn't be looked at again
    Positions kept;     // the traced leaves that aren't donated

    auto python_refs() { return std::tie(classes, statics, function, copy, types); }
};
using CallPlanBox = Box<CallPlan>;

// TypeError if the parts don't belong together, IndexError if there are too few leaves for the positions, ValueError if
// the positions of refs aren't in order.
nb::object make_call_plan(CallPlan plan);

struct CallPlans {
    // The structure that was called last. Most calls have it, so it is tried first.
    struct Last {
        nb::object spec, plans;
        uint64_t generation = 0;  // of the cache of structures, when it was taken from there
        Setting setting;
        uint64_t times_forgotten = 0;  // when the plans were looked up: another thread may have had them forgotten
        bool must_ask = false;         // whether the structure has nodes that must be asked
        bool is_bare = false;          // whether the arguments are leaves, and few: see arguments.h
    };
    nb::object namespace_, identity;
    nb::object access;  // a RefAccess, or None
    nb::object by_key;  // a dict: for the SpecKey of a structure a tuple of plans, the newest first
    StaticLeaves statics;
    Last last;
    std::atomic<uint64_t> times_forgotten = 0;
    auto python_refs() { return std::tie(namespace_, identity, access, by_key, statics.by_key, last.spec, last.plans); }
};
static_assert(sizeof(CallPlans) ==
                  4 * sizeof(nb::object) + sizeof(StaticLeaves) + sizeof(CallPlans::Last) + sizeof(uint64_t),
              "list it in python_refs()");
using CallPlansBox = Box<CallPlans>;

// What a compiled function was called with before. `access`: a RefAccess or None.
nb::object make_call_plans(nb::handle namespace_, nb::handle identity, nb::handle access);

// The last few plans for a structure are kept. IndexError if it has another number of leaves.
void add_plan(nb::handle plans, nb::handle spec_key, nb::handle plan);
// `spec_key`: None for all of them, and for the leaves of static arguments.
void forget_plans(nb::handle plans, nb::handle spec_key);
// Null if there are none.
nb::object plans_for(const CallPlans &plans, nb::handle spec_key);

// What an object remembers of its last call, which other threads may replace meanwhile.
template <class T>
T shared_copy(nb::handle object, const T &member) {
    const Locked locked(object.ptr());
    return member;
}
template <class T>
void replace_shared(nb::handle object, T &member, T value) {
    const Locked locked(object.ptr());
    std::swap(member, value);  // the caller releases what was there
}

}  // namespace pydag
