// SPDX-License-Identifier: Apache-2.0
//
// The way into a compiled function and out of it again, without Python code between.
#pragma once

#include "jit/arguments.h"

namespace pydag {

// Calls the function with the leaves of the arguments, a tuple and a dict, by the newest plan for their structure that
// fits; and builds what it returns, see `build_result`. NotImplemented where none fits: for other static leaves than
// these very objects, and for other classes of leaves. New contents of refs are
// written once the function has returned. `plans`: a CallPlans.
nb::object follow_plan(nb::handle plans, nb::handle args, nb::handle kwargs);

// The same, for these arguments.
nb::object follow_plan(nb::handle plans, CallArguments &arguments);

// Puts a copy in the place of each donated leaf that is passed at another place, too. `passed` has all, those included.
// XLA takes a donated array once, and refuses a call that has it at another place, too. A leaf without identity may
// stand at several places: then copies are donated, and the array itself is left to its owner.
void copy_donated(Leaves &leaves, const std::vector<uint32_t> &passed, const std::vector<uint32_t> &donated,
                  nb::handle copy);

}  // namespace pydag
