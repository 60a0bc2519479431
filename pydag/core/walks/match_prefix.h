// SPDX-License-Identifier: Apache-2.0
//
// Holds a tree against a prefix of it, of which only the nodes count: what the prefix shares says
// nothing.
#pragma once

#include "structure/structure.h"

#include <vector>

namespace pydag {

// ValueError where the tree doesn't fit. `opened` receives each object of the tree that a node of the
// prefix has met, and `met` the positions of these nodes. Linear in the pairs of an object and what it meets.
void match_prefix(const Structure &prefix, nb::handle tree, RefBuffer<48> &opened, std::vector<uint32_t> &met);

}  // namespace pydag
