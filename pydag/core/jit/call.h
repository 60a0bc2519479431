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

}  // namespace pydag
