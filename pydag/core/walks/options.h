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
    bool leaf_identity = true;    // identity="all"; false: "nodes"
    bool opens_callbacks = true;  // false: what a flatten function would have to open is a leaf
    Namespace *space = nullptr;

    // From the arguments as Python passes them. `is_leaf` may be None; `identity` is "all" or "nodes".
    static FlattenOptions parse(nb::handle is_leaf, nb::handle none_is_leaf, nb::handle namespace_,
                                nb::handle identity);

    // Writes down what a structure says as a whole, once all of its nodes are there.
    void describe(StructureBuilder &builder, size_t num_leaves, bool uses_namespace) const;
};

}  // namespace pydag
