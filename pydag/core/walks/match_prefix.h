// SPDX-License-Identifier: Apache-2.0
//
// Matches a tree with a prefix. Only the nodes of the prefix count; what it shares doesn't.
#pragma once

#include "structure/structure.h"

#include <vector>

namespace pydag {

// ValueError if the tree doesn't fit. `opened` receives each object of the tree for which the prefix has a
// node, and `met` the positions of these nodes. Linear in the pairs of an object and a node.
void match_prefix(const Structure &prefix, nb::handle tree, RefBuffer<48> &opened, std::vector<uint32_t> &met);

}  // namespace pydag
