// SPDX-License-Identifier: Apache-2.0
//
// The smallest structure that two structures are prefixes of.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Writes `first` with what `second` has in the places of its leaves. Kinds and sharing are those of
// `first`; what stands for one of its leaves has the sharing of `second` within. ValueError where the
// two don't go together, SharingError where a shared leaf would get two different structures.
void common_suffix(const Structure &first, const Structure &second, StructureBuilder &result);

}  // namespace pydag
