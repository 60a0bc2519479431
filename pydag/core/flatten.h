// SPDX-License-Identifier: Apache-2.0
//
// Takes a DAG apart: its distinct leaves, and its structure.
#pragma once

#include "children.h"
#include "error.h"
#include "identity_table.h"

namespace pydag {

using Leaves = RefBuffer<96>;

struct FlattenOptions {
    nb::object is_leaf;  // a predicate, or null
    bool none_is_leaf = false;
    bool leaf_identity = true;  // identity="all"; false: "nodes"
    Namespace *space = nullptr;

    // From the arguments as Python passes them. `is_leaf` may be None; `identity` is "all" or "nodes".
    static FlattenOptions parse(nb::handle is_leaf, nb::handle none_is_leaf, nb::handle namespace_,
                                nb::handle identity);
};

// Fills `draft` and `leaves`, both empty before. Raises CycleError for an object that contains
// itself; whatever a callback raises passes through with a note that names the place.
// `shared`, where given, receives the shared objects themselves, by their number.
void flatten(PyObject *tree, const FlattenOptions &options, Draft &draft, Leaves &leaves,
             std::vector<nb::object> *shared = nullptr);

// A list with the leaves, made in one piece.
nb::object list_of(const Leaves &leaves);

}  // namespace pydag
