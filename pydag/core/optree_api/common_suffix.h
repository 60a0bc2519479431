// SPDX-License-Identifier: Apache-2.0
//
// The smallest structure that two structures are prefixes of.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Writes `first`, with its leaves replaced by what `second` has at the same paths. Kinds and sharing are
// those of `first`; what replaces a leaf has within it the sharing of `second`. ValueError if the two don't
// go together, SharingError if a shared leaf would be replaced by two different structures.
void common_suffix(const Structure &first, const Structure &second, StructureBuilder &result);

}  // namespace pydag
