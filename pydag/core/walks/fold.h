// SPDX-License-Identifier: Apache-2.0
//
// Computes over a DAG from its leaves up: a function is called once for each distinct object, with
// the object and what it gave for the children.
//
// The DAG is taken apart before the function is called first. So a function that changes an object
// doesn't change what the fold goes through, and everything that it may be called with is owned.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Returns what `function(node, children)` returned for the root. `function` may be a mapping from classes to
// functions.
nb::object fold(nb::handle function, nb::handle tree, const FlattenOptions &options);

// With information from above: `down(node, context)` gives the context of the node's children, and
// the root has `context`. `function(node, children, context)` is called once for each object and
// context of its own.
nb::object fold_with_context(nb::handle function, nb::handle tree, nb::handle down, nb::handle context,
                             const FlattenOptions &options);

}  // namespace pydag
