// SPDX-License-Identifier: Apache-2.0
//
// What makes a new tree with another structure: the tree is taken apart, its structure is rewritten, and a tree is
// built from it.
//
//   tie, untie     make several places hold one object; give places copies of their own
//   retie          gives a tree that may hold several copies of a leaf the sharing of a spec
//   replace        puts another object in the place of one
//   deref, reref   write sharing out in an ordinary pytree, and read it back
#pragma once

#include "walks/flatten.h"

namespace pydag {

// A tree in which the object at the first path stands at the other paths, too. ValueError if a path leads
// nowhere, or if the objects are structured differently; CycleError if an object would contain
// itself. `paths`: a tuple of tuples of entries.
nb::object tie(nb::handle tree, nb::handle paths, const FlattenOptions &options);

// A tree in which each of `paths` gets its own copy of the object that stands there, with all that is below
// it; `copy_leaf` copies the leaves. If the paths name all slots of an object, the first one keeps the object.
// ValueError if nothing there is shared. No paths: all slots; ValueError if the tree would be too large.
nb::object untie(nb::handle tree, nb::handle paths, nb::handle copy_leaf, const FlattenOptions &options);

// A DAG with the structure of `spec`, made from a tree that may hold several copies of a leaf, up to one for
// each path.
//
// `combine` is null or a function of two leaves, by which the distinct copies of a leaf are folded in
// the order in which they are met. Without it they must be equal, according to `are_equal(a, b)`;
// SharingError names two that are not. ValueError for a tree of another shape.
nb::object retie(nb::handle spec, nb::handle tree, nb::handle are_equal, nb::handle combine);

// The tree, with `old_object` replaced by `new_object` in all of its slots. What the new object holds of the tree is
// the same object in the new tree. ValueError if the tree doesn't hold the old object, or if that is a value, which has
// no identity; CycleError if the new one holds an object that holds the old one.
nb::object replace(nb::handle tree, nb::handle old_object, nb::handle new_object, FlattenOptions options);

// `deref` and `reref` write sharing out in an ordinary pytree, and read it back:
//
//   shared object    ->  Anchor(index, value) where it is first met, Alias(index) everywhere else
//   node that JAX    ->  Node(type, aux_data, children)
//   can't open

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
