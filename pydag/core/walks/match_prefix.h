// SPDX-License-Identifier: Apache-2.0
//
// Holds a tree against a prefix of it, of which only the nodes count: what the prefix shares says
// nothing.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// ValueError where the tree doesn't fit. `opened` receives each object of the tree that a node of the
// prefix has met. Linear in the pairs of an object and what it meets.
void match_prefix(const Structure &prefix, nb::handle tree, Leaves &opened);

}  // namespace pydag
