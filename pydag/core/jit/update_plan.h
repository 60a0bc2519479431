// SPDX-License-Identifier: Apache-2.0
//
// What a compiled function changes in its arguments: found when it is traced, written at each call.
#pragma once

#include "base/box.h"

#include <vector>

namespace pydag {

struct UpdatePlan {
    using Positions = std::vector<uint32_t>;
    nb::object spec;      // of the arguments
    Positions positions;  // of the leaves that are written, among the leaves
    Positions origins;    // of the nodes that the function has returned, in the structure
    nb::object writers;   // as in NewLeaves
    nb::object returned;  // (result, list of these nodes of the arguments) -> the result with them in it; or None
    nb::object roots;     // what the arguments are called in messages: see Roots
    auto python_refs() { return std::tie(spec, writers, returned, roots); }
};
using UpdatePlanBox = Box<UpdatePlan>;

// What a compiled function returns that changes its arguments.
struct Updated {
    nb::object result;  // for `build_result`
    nb::object leaves;  // a tuple or list: what is written
    nb::object plan;    // says where; None if nothing is written
    auto python_refs() { return std::tie(result, leaves, plan); }
};
static_assert(sizeof(Updated) == 3 * sizeof(nb::object), "list the new member in python_refs()");
using UpdatedBox = Box<Updated>;

// IndexError if the structure has too few leaves or nodes.
nb::object make_update_plan(UpdatePlan plan);
// `parts`: a tuple or list of the result, the plan and the leaves. TypeError for anything else.
nb::object make_updated(nb::handle parts);
// That tuple.
nb::object open_updated(nb::handle updated);

// Writes these leaves, a tuple or list, into a tree as the plan says; see walks/walks.h. Returns the list of the
// objects at the plan's origins. TypeError if the numbers of positions and leaves differ.
nb::object carry_out(nb::handle plan, nb::handle tree, nb::handle leaves);
// Writes what a function has returned, an Updated, into its arguments. `result`: its built result, which is returned
// with the objects of the arguments that the function has returned.
nb::object update_arguments(nb::handle updated, nb::handle arguments, nb::object result);

}  // namespace pydag
