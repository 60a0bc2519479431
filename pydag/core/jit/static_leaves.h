// SPDX-License-Identifier: Apache-2.0
//
// The leaves that stand for static arguments: one for all equal values, so that calls with the same static arguments
// have the same leaves.
//
// Leaves own their values, so while a leaf is known, its key is that of no other value (jit/value_key.h).
#pragma once

#include "base/capi.h"

namespace pydag {

struct StaticLeaves {
    nb::object by_key;  // a dict: the leaf of a value, by the value's key
};

StaticLeaves make_static_leaves();

// The leaf for a value; null if none is known.
nb::object find_static_leaf(const StaticLeaves &leaves, nb::handle value);
// If there are very many leaves, forgets all others. `leaf`: an object with a `value`, which never changes.
void add_static_leaf(const StaticLeaves &leaves, nb::handle leaf);
void forget_static_leaves(const StaticLeaves &leaves);

}  // namespace pydag
