// SPDX-License-Identifier: Apache-2.0
//
// Changes which object stands where in a tree: the result is a new tree.
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

}  // namespace pydag
