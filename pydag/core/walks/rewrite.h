// SPDX-License-Identifier: Apache-2.0
//
// Rewrites a DAG from its leaves up. An object in which nothing changed stays the same object.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// `function(node)` gets each distinct object once, with its parts rewritten, and returns what replaces
// it, which is not rewritten again. `function` may be a mapping from classes to functions; objects of
// other classes stay. A value that is replaced by an equal one of the same type is unchanged.
nb::object rewrite(nb::handle function, nb::handle tree, const FlattenOptions &options);

}  // namespace pydag
