// SPDX-License-Identifier: Apache-2.0
//
// Matches the keys of one node with those of another one; their order doesn't count.
#pragma once

#include "types/keys.h"

#include <string>
#include <vector>

namespace pydag {

// Whether both have the same keys. Then `order[i]` is the index of expected.key(i) in `actual`, or
// `order` is empty if all indices are the same. Keys are found as a dict finds them.
bool match_keys(nb::handle expected, nb::handle actual, std::vector<uint32_t> &order);

// In words: the keys of two nodes that don't match, and which are missing and surplus. Expected keys stand
// in the order of traversal, all others are sorted.
std::string key_mismatch(const Keys &expected, const Keys &actual);

}  // namespace pydag
