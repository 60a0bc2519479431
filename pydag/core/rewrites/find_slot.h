// SPDX-License-Identifier: Apache-2.0
//
// Finds the slot that a path leads to.
#pragma once

#include "structure/indexed_structure.h"

namespace pydag {

// The position of the slot to which a path, a tuple of entries, leads. Entries are compared by
// identity, then `==`. ValueError if there is no such slot.
uint32_t find_slot(const IndexedStructure &tree, nb::handle path);

}  // namespace pydag
