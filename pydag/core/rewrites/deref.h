// SPDX-License-Identifier: Apache-2.0
//
// Writes sharing out in an ordinary pytree, and reads it back. Both rewrite a structure between flattening
// and unflattening:
//
//   shared object    ->  Anchor(index, value) where it is first met, Alias(index) everywhere else
//   node that JAX    ->  Node(type, aux_data, children)
//   can't open
#pragma once

#include "walks/flatten.h"

namespace pydag {

// The three classes, registered with `register_fields`: Anchor(index | value), Alias(index |),
// Node(type, aux_data | children), meta fields before the bar.
void set_deref_classes(nb::object anchor, nb::object alias, nb::object node);

// An ordinary pytree for a tree with sharing. The leaves stay in order.
nb::object deref(nb::handle tree, const FlattenOptions &options);

// Replaces Anchor, Alias and Node in a tree by the objects that they stand for. An alias may come before its anchor, so
// the order of the leaves may change. SharingError for an alias without an anchor, and for two anchors of
// one index that are not one object.
nb::object reref(nb::handle tree, const FlattenOptions &options);

// Whether a class is one of the three.
bool is_deref_class(nb::handle type);

namespace detail {
// Which of the three a node is; kOther for any other node.
enum class Mark { kAnchor, kAlias, kNode, kOther };
Mark mark_of(Kind kind, PyObject *const *refs);
// The index of the Anchor or Alias at this node.
uint64_t index_of(const Structure &structure, uint32_t node, PyObject *const *refs);
}  // namespace detail

}  // namespace pydag
