// SPDX-License-Identifier: Apache-2.0
//
// The path that a walk has taken down a structure, if it went through aliases.
#pragma once

#include "structure/paths.h"
#include "structure/placed_structure.h"

namespace pydag {

// The steps to the last of these slots. The path to the first slot is its own; each further slot belongs to
// the object that the slot before it holds.
Steps steps_along(const PlacedStructure &structure, const std::vector<uint32_t> &slots);

}  // namespace pydag
