// SPDX-License-Identifier: Apache-2.0
//
// Structures in the place of a structure's leaves.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Writes `outer` with `inner` in the place of each leaf. What stands in the place of a shared leaf is
// one object in all of its places; a tuple, which is none, is written at each, and what it holds is
// shared. ValueError where the two don't go together.
void compose(const Structure &outer, const Structure &inner, StructureBuilder &result);

}  // namespace pydag
