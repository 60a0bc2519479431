// SPDX-License-Identifier: Apache-2.0
//
// Replaces the leaves of a structure by another structure.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Writes `outer`, with each leaf replaced by `inner`. What replaces a shared leaf is one object in all
// slots of the leaf. A tuple has no identity, so it is written once for each slot, and its parts are
// shared. ValueError if the two don't go together.
void compose(const Structure &outer, const Structure &inner, StructureBuilder &result);

}  // namespace pydag
