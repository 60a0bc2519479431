// SPDX-License-Identifier: Apache-2.0
//
// Goes through a structure from the leaves up. Functions replace each part by a result.
#pragma once

#include "structure/structure.h"

namespace pydag {

// What a function is called with for a node: the object, built of the results of its parts; or its
// class, its data (nodes/node_data.h) and a tuple of the results of its parts.
enum class NodeCall { kBuilt, kParts };

// Calls `leaf_function(leaf)` once for each distinct leaf and `node_function` once for each distinct
// node, and for each tuple, after all that it holds; the result of a shared object stands in all of its
// slots. Without a function (null) leaves stay, and nodes are built. Returns the result of the root.
//
// `leaves` is an iterator. A leaf is fetched when it is needed, the next one as soon as the function
// has returned. ValueError if there are too few or too many.
nb::object traverse(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
                    NodeCall how);

}  // namespace pydag
