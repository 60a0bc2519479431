// SPDX-License-Identifier: Apache-2.0
//
// Holds the keys of one node against those of another one, where their order doesn't count.
#pragma once

#include "types/keys.h"

#include <string>
#include <vector>

namespace pydag {

// Whether both have the same keys; `places[i]` is then the place of expected.key(i) in `actual`.
// `places` stays empty where all are the same. Keys are found as a dict finds them.
bool match_keys(nb::handle expected, nb::handle actual, std::vector<uint32_t> &places);

// What the keys of two nodes that don't match are, and which are missing and surplus: in the order
// of traversal those that are expected, sorted all others.
std::string key_mismatch(const Keys &expected, const Keys &actual);

}  // namespace pydag
