// SPDX-License-Identifier: Apache-2.0
//
// Functions that go over a DAG from its leaves up, once for each distinct object.
//
// The DAG is taken apart before the user's function is called for the first time. So a function that changes an object
// doesn't change the walk, and everything that the function may be called with is owned.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Calls `function(node, children)`, where `children` are its results for the children. Returns its result for the root.
// `function` may be a mapping from classes to functions.
nb::object fold(nb::handle function, nb::handle tree, const FlattenOptions &options);

// With information from above: `down(node, context)` gives the context of the node's children, and
// the root has `context`. `function(node, children, context)` is called once for each object and
// context of its own.
nb::object fold_with_context(nb::handle function, nb::handle tree, nb::handle down, nb::handle context,
                             const FlattenOptions &options);

// Replaces each object by what `function(node)` returns for it, with its parts rewritten; the result is not rewritten
// again. An object in which nothing changed stays the same object. `function` may be a mapping from classes to
// functions; objects of other classes stay. A value that is replaced by an equal one of the same type is unchanged.
nb::object rewrite(nb::handle function, nb::handle tree, const FlattenOptions &options);

// Makes equal parts one object ("hash consing"). Nodes are equal by class, keys in the order in which they were filled
// in, aux_data and children; leaves by identity, values by type and `==`. Of equal nodes the first one stays; it is
// rebuilt only if something below it was merged. If nothing is merged, the same tree comes back.
nb::object intern(nb::handle tree, const FlattenOptions &options);

// What a function is called with for a node: the object, built of the results of its parts; or its
// class, its data (nodes/node_aux.h) and a tuple of the results of its parts.
enum class NodeCall { kBuilt, kParts };

// Calls `leaf_function(leaf)` once for each distinct leaf and `node_function` once for each distinct
// node, and for each tuple, after its children; every slot of a shared object gets the result of that
// object. Without a function (null) leaves stay, and nodes are built. Returns the result of the root.
//
// `leaves` is an iterator. A leaf is fetched when it is needed, the next one as soon as the function
// has returned. ValueError if there are too few or too many.
nb::object traverse(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
                    NodeCall how);

}  // namespace pydag
