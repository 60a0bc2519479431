// SPDX-License-Identifier: Apache-2.0
//
// Converts a structure to optree's PyTreeSpec, which has no sharing: every path is written out.
#pragma once

#include "structure/structure.h"

namespace pydag {

// optree's PyTreeSpec of the unfolded tree. ValueError if that would be too large, or if optree doesn't
// open a class as the structure does.
nb::object to_treespec(const Structure &structure);

}  // namespace pydag
