// SPDX-License-Identifier: Apache-2.0
//
// The leaves that stand for static arguments: one for all equal values, so that calls with the same static arguments
// have the same leaves.
//
// Values of plain classes, and tuples of them, are found by equality, which runs no code of the user's, and all others
// by identity.
#pragma once

#include "base/capi.h"

namespace pydag {

struct StaticLeaves {
    nb::object by_value;  // a dict: for a plain class, or a tuple of plain classes, a dict of leaves by value
    nb::object by_id;     // a dict, by the id of a value: its leaf
};

StaticLeaves make_static_leaves();

// The leaf for a value; null if none is known.
nb::object find_static_leaf(const StaticLeaves &leaves, nb::handle value);
// `leaf`: an object with a `value`, which never changes.
void add_static_leaf(const StaticLeaves &leaves, nb::handle leaf);
void forget_static_leaves(const StaticLeaves &leaves);

}  // namespace pydag
