// SPDX-License-Identifier: Apache-2.0
//
// The way that a walk has gone down a structure, where it came to its nodes by way of aliases.
#pragma once

#include "structure/paths.h"
#include "structure/placed_structure.h"

namespace pydag {

// The steps to the last of these slots. The first one has its own path; each further one is a slot of
// what stands in the one before.
Steps steps_along(const PlacedStructure &structure, const std::vector<uint32_t> &slots);

}  // namespace pydag
