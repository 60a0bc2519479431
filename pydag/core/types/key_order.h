// SPDX-License-Identifier: Apache-2.0
//
// Sorts the keys of a mapping.
#pragma once

#include "base/capi.h"

namespace pydag {

// Writes two permutations to `ranks`: for each key its index in ascending order; behind those, for each
// index in ascending order, the index of its key now. False if the keys ascend already; then what is in
// `ranks` is of no use. Keys that don't compare are sorted by the name of their type first; if that fails
// too, they keep their order. Runs the keys' own comparisons: that is no Python code
// if their hashes are constant (keys.h). The caller owns the keys where it may be.
bool ascending_order(PyObject *const *keys, uint32_t count, uint32_t *ranks);

}  // namespace pydag
