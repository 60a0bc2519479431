// SPDX-License-Identifier: Apache-2.0
//
// The options that every function has that takes a DAG apart.
#pragma once

#include "structure/structure.h"
#include "types/registry.h"

namespace pydag {

struct FlattenOptions {
    nb::object is_leaf;  // a predicate, or null
    bool none_is_leaf = false;
    bool leaf_identity = true;  // identity="all"; false: "nodes"
    nb::handle whole;           // an object that is not opened, or null
    Namespace *space = nullptr;

    // Whether the walk has to ask of each object whether it is opened.
    bool asks() const { return is_leaf.is_valid() || whole.is_valid(); }

    // From the arguments as Python passes them. `is_leaf` may be None; `identity` is "all" or "nodes".
    static FlattenOptions parse(nb::handle is_leaf, nb::handle none_is_leaf, nb::handle namespace_,
                                nb::handle identity);

    // Writes down what a structure says as a whole, once all of its nodes are there.
    void describe(StructureBuilder &builder, size_t num_leaves, bool uses_namespace) const;
};

}  // namespace pydag
