// SPDX-License-Identifier: Apache-2.0
//
// Sharing written out in an ordinary pytree, and read back. Both are rewrites of a structure,
// between flattening and unflattening:
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

// Rewrites a tree with Anchor, Alias and Node in it to what they stand for. Anchors and
// aliases may come in any order, so the leaves may change theirs. SharingError for an alias without
// an anchor, and for two anchors of one index that are not one object.
nb::object reref(nb::handle tree, const FlattenOptions &options);

// Whether a class is one of the three.
bool is_deref_class(nb::handle type);

namespace detail {
// Which of the three a node is; kOther for every other one.
enum class Mark { kAnchor, kAlias, kNode, kOther };
Mark mark_of(Kind kind, PyObject *const *refs);
// The index of the Anchor or Alias at this node.
uint64_t index_of(const Structure &structure, uint32_t node, PyObject *const *refs);
}  // namespace detail

}  // namespace pydag
