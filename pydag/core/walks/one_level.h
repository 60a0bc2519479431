// SPDX-License-Identifier: Apache-2.0
//
// One object by itself: whether it is a leaf, and what it consists of.
#pragma once

#include "walks/options.h"

namespace pydag {

// Whether a walk would take the object for a leaf. The predicate is asked first.
bool is_leaf(nb::handle object, const FlattenOptions &options);

// Whether all items of an iterable are leaves; stops at the first item that isn't.
bool are_leaves(nb::handle iterable, const FlattenOptions &options);

// (children, entries, spec) of a node: a list, a tuple, and a structure of one leaf for each child,
// whatever they share.
nb::object open_one_level(nb::handle object, const FlattenOptions &options);

}  // namespace pydag
