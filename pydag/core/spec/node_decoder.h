// SPDX-License-Identifier: Apache-2.0
//
// Nodes that came from outside, checked. Nothing in them is believed: errors are `Malformed` and name the
// node or the reference by its index.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Where the nodes come from.
class NodeSource {
public:
    virtual ~NodeSource() = default;
    virtual size_t size() const = 0;
    // The i-th node, and where its references stand among all: `num_refs(node)` indices. Asked once for
    // each node, in their order.
    virtual Node read(size_t i, size_t *indices) = 0;
};

// Checks all that can be checked without the references themselves: nesting, anchors and aliases, and that
// each of `num_refs` references is used.
void check_nodes(NodeSource &source, bool none_is_leaf, size_t num_refs);

// Checks everything, and adds the nodes to a builder that knows its options already. `refs` is a tuple that
// the caller owns, with the references as `EncodedRefs` writes them.
void decode_nodes(NodeSource &source, nb::handle refs, StructureBuilder &builder);

}  // namespace pydag
