// SPDX-License-Identifier: Apache-2.0
//
// The way into a compiled function and out of it again, without Python code between.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Calls the function with the leaves of the arguments, a tuple (args, kwargs), as the recipe says that
// `known`, a dict, has for the SpecKey of their structure; and builds what it returns, a Result.
// NotImplemented where there is no recipe, or one for other static leaves than these very objects, or for
// other classes of leaves.
nb::object call_flat(nb::handle function, PyObject *known, nb::handle arguments, const FlattenOptions &options);

}  // namespace pydag
