// SPDX-License-Identifier: Apache-2.0
//
// Every path from the root to each leaf. There may be exponentially many. Only parts that hold leaves are
// visited, so the cost is proportional to the paths themselves.
#pragma once

#include "structure/structure.h"

namespace pydag {

// For each leaf a list of all its paths, tuples of entries, in traversal order.
nb::object all_paths(const Structure &structure);

}  // namespace pydag
