// SPDX-License-Identifier: Apache-2.0
//
// Sorts the keys of a mapping.
#pragma once

#include "base/capi.h"

namespace pydag {

// Writes to `places` the place of each key in ascending order, and behind those the other way round: of
// each key in ascending order, where it stands now. False where the keys ascend already; then what is
// written says nothing. Keys that don't compare are sorted by the name of their type first, and where that
// fails too the order stands as it is. Runs the keys' own comparisons, but for `are_strings`: exact ones.
// The caller owns the keys.
bool ascending_order(PyObject *const *keys, uint32_t count, bool are_strings, uint32_t *places);

}  // namespace pydag
