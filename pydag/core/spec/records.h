// SPDX-License-Identifier: Apache-2.0
//
// A structure as records of its nodes, for code in Python that writes it in a format of its own, and back.
//
//   rows  a tuple with a tuple for each node, in pre-order: (kind, is_anchor, count, index ...)
//   refs  a tuple of the distinct references, as `EncodedRefs` writes them (encoded_refs.h)
//
// `kind` is the name of a kind, `count` the number of children, for an alias its anchor's number. An index is
// that in `refs` of one of the node's references: which ones a kind has, and in which order, says `node_kinds`.
#pragma once

#include "structure/structure.h"

namespace pydag {

// (rows, refs)
nb::object nodes_of(const Structure &structure);

// The spec that has these nodes. Nothing in them is believed: ValueError names the field by its index, as in
// `nodes[3]: ...`.
nb::object spec_from_nodes(bool none_is_leaf, nb::handle namespace_, nb::handle rows, nb::handle refs);

// Checks rows whose references are not at hand, but for their number: nesting, anchors and aliases, and that
// each reference is used. ValueError names the field.
void check_rows(bool none_is_leaf, nb::handle rows, size_t num_refs);

}  // namespace pydag
