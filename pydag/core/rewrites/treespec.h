// SPDX-License-Identifier: Apache-2.0
//
// A structure as optree's PyTreeSpec says it: without sharing, every path written out.
#pragma once

#include "structure/structure.h"

namespace pydag {

// optree's PyTreeSpec of the unfolded tree. ValueError where that would be too large, or where optree
// doesn't open a class as the structure does.
nb::object to_treespec(const Structure &structure);

}  // namespace pydag
