// SPDX-License-Identifier: Apache-2.0
//
// Goes through a structure from the leaves up, and lets functions say what comes of each part.
#pragma once

#include "structure/structure.h"

namespace pydag {

// What a function is called with for a node: the object, built of what came of its parts; or its
// class, its data (nodes/node_data.h) and what came of its parts, as a tuple.
enum class NodeCall { kBuilt, kParts };

// Calls `leaf_function(leaf)` once for each distinct leaf and `node_function` once for each distinct
// node, and for each tuple, after all that it holds; what came of a shared object stands at all of
// its places. Null: leaves stay, nodes are built. Returns what came of the root.
//
// `leaves` is an iterator. A leaf is fetched when it is needed, the next one as soon as the function
// has returned. ValueError where there are too few or too many.
nb::object traverse(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
                    NodeCall how);

}  // namespace pydag
