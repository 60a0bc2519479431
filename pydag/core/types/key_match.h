// SPDX-License-Identifier: Apache-2.0
//
// Matches the keys of one node with those of another one; their order doesn't count.
#pragma once

#include "types/keys.h"

#include <string>
#include <vector>

namespace pydag {

// Whether both have the same keys. Then `places[i]` is the index of expected.key(i) in `actual`, or
// `places` is empty if all indices are the same. Keys are found as a dict finds them.
bool match_keys(nb::handle expected, nb::handle actual, std::vector<uint32_t> &places);

// In words: the keys of two nodes that don't match, and which are missing and surplus. Expected keys stand
// in the order of traversal, all others are sorted.
std::string key_mismatch(const Keys &expected, const Keys &actual);

}  // namespace pydag
