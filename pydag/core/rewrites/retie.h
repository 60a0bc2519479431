// SPDX-License-Identifier: Apache-2.0
//
// Gives a tree that lost its sharing the sharing of a structure.
#pragma once

#include "walks/match.h"

namespace pydag {

// A DAG with the structure of `spec`, made from a tree that may hold several copies of a leaf, up to one for
// each path.
//
// `combine` is null or a function of two leaves, by which the distinct copies of a leaf are folded in
// the order in which they are met. Without it they must be equal, according to `are_equal(a, b)`;
// SharingError names two that are not. ValueError for a tree of another shape.
nb::object retie(nb::handle spec, nb::handle tree, nb::handle are_equal, nb::handle combine);

}  // namespace pydag
