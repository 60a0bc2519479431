// SPDX-License-Identifier: Apache-2.0
//
// Every way from the root to each leaf. There may be exponentially many; only parts that hold leaves
// are gone through, and what they cost is the paths themselves.
#pragma once

#include "structure/structure.h"

namespace pydag {

// For each leaf a list of all its paths, tuples of entries, in traversal order.
nb::object all_paths(const Structure &structure);

}  // namespace pydag
