// SPDX-License-Identifier: Apache-2.0
//
// Rewrites a DAG from its leaves up. What nothing changed in is the same object as before.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// `function(node)` gets each distinct object once, with its parts rewritten, and returns what stands
// for it, which is not rewritten again. `function` may be a mapping from classes to functions; what
// it has no class for stays. Values are unchanged where they are of one type and equal.
nb::object rewrite(nb::handle function, nb::handle tree, const FlattenOptions &options);

}  // namespace pydag
