// SPDX-License-Identifier: Apache-2.0
//
// A structure as records of its nodes, and back: for code in Python that has its own formats.
//
//   rows  a tuple with a tuple for each node, in pre-order: (kind, is_anchor, count, index ...)
//   refs  a tuple of the distinct references, as `EncodedRefs` writes them (encoded_refs.h)
//
// `kind` is the name of a kind, `count` the number of children, for an alias its anchor's number. An index is that in
// `refs` of one of the node's references; `node_kinds` has the roles of a kind's references, in their order.
#pragma once

#include "structure/structure.h"

namespace pydag {

// (rows, refs)
nb::object nodes_of(const Structure &structure);

// The spec that has these nodes. All is checked: ValueError names the field by its index, as in `nodes[3]: ...`.
nb::object spec_from_nodes(bool none_is_leaf, nb::handle namespace_, nb::handle rows, nb::handle refs);

// Checks rows without their references: nesting, anchors and aliases, and that each reference is used. ValueError names
// the field.
void check_rows(bool none_is_leaf, nb::handle rows, size_t num_refs);

}  // namespace pydag
