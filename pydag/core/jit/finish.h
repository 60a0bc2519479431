// SPDX-License-Identifier: Apache-2.0
//
// What a compiled function has returned, made into the result of the call.
#pragma once

#include "base/capi.h"

#include <functional>

namespace pydag {

// Whether a function has returned the result itself. `access`: a RefAccess or None.
bool is_result_itself(nb::handle returned, nb::handle access);

// The result, built; arguments that it updates are written once all is built. `given`: returns the leaves of the
// arguments; `tree`: the arguments, a tuple and a dict.
nb::object finished(nb::handle returned, const std::function<nb::object()> &given, nb::handle access,
                    const std::function<nb::object()> &tree);

}  // namespace pydag
