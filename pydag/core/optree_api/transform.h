// SPDX-License-Identifier: Apache-2.0
//
// Replaces the nodes and leaves of a structure by what functions return for them.
#pragma once

#include "spec/spec.h"

namespace pydag {

// Calls `node_function(spec)` for each distinct node and each occurrence of a tuple, after all that it holds,
// and `leaf_function(spec)` for each distinct leaf. `spec` is that of the node alone, with a leaf in each
// slot. Both return specs; that of a node must have as many slots. A function that is null replaces nothing.
// What was one object stays one object, unless a tuple replaces it, whose parts are then shared.
nb::object transform(const Spec &spec, nb::handle node_function, nb::handle leaf_function);

}  // namespace pydag
