// SPDX-License-Identifier: Apache-2.0
//
// The leaves that stand for static arguments: one for all values that are equal, so that calls with the same static
// arguments have the same leaves.
//
// Values of plain classes, and tuples of them, are found by what they are equal to, which runs no code of the user's;
// all others by identity.
#pragma once

#include "base/capi.h"

namespace pydag {

struct StaticLeaves {
    nb::object by_value;  // a dict: for a plain class, or a tuple of plain classes, a dict of leaves by value
    nb::object by_id;     // a dict, by the id of a value: its leaf
};

StaticLeaves make_static_leaves();

// The leaf for a value; null where none is known.
nb::object find_static_leaf(const StaticLeaves &leaves, nb::handle value);
// `leaf`: an object whose `value`, which can't change, a call may have again.
void add_static_leaf(const StaticLeaves &leaves, nb::handle leaf);
void forget_static_leaves(const StaticLeaves &leaves);

}  // namespace pydag
