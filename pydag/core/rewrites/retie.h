// SPDX-License-Identifier: Apache-2.0
//
// Gives a tree that lost its sharing that of a structure.
#pragma once

#include "walks/match.h"

namespace pydag {

// A DAG of the spec with one object for each leaf, from a tree that may hold several copies of it: one
// object for each path.
//
// `combine` is null or a function of two leaves: the distinct copies of a leaf, in the order in
// which they are met, are folded by it. Without it they must be equal, which `are_equal(a, b)` says;
// SharingError names two that are not. ValueError for a tree of another shape.
nb::object retie(nb::handle spec, nb::handle tree, nb::handle are_equal, nb::handle combine);

}  // namespace pydag
