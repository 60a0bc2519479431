// SPDX-License-Identifier: Apache-2.0
//
// A call of a compiled function by a plan, from the arguments to the built result, without Python code.
#pragma once

#include "jit/arguments.h"

namespace pydag {

// Calls the function with the leaves of the arguments, a tuple and a dict, by the newest plan for their structure that
// fits, and builds what it returns (`build_result`). A plan fits only its own static leaves, by identity, and its
// classes of leaves; NotImplemented if none fits. New contents of refs are written once the function has returned.
// `plans`: a CallPlans.
nb::object follow_plan(nb::handle plans, nb::handle args, nb::handle kwargs);

// The same, for these arguments.
nb::object follow_plan(nb::handle plans, CallArguments &arguments);

// Replaces each donated leaf that is passed at another place, too, by a copy. `passed`: all positions, donated or not.
// XLA refuses a call that donates an array and has it at another place, too, as may happen with leaves that have no
// identity. So copies are donated, and the array itself is left to its owner.
void copy_donated(Leaves &leaves, const std::vector<uint32_t> &passed, const std::vector<uint32_t> &donated,
                  nb::handle copy);

}  // namespace pydag
