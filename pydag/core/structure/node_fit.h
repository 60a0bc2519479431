// SPDX-License-Identifier: Apache-2.0
//
// Whether a node of one structure fits a node of another one, as a prefix fits a tree: mappings of all
// kinds with the same keys fit one another, and neither the order of keys, nor a default factory, nor the
// limit of a deque counts.
#pragma once

#include "structure/structure.h"

#include <string>
#include <vector>

namespace pydag {

enum class Fit { kFits, kOtherKind, kOtherCount, kOtherClass, kOtherKeys, kOtherData };

// If they fit, slot i of `a` goes with slot `order[i]` of `b`; `order` is empty where the order is the
// same. Neither node is a leaf or an alias. Keys and aux_data are compared by identity, then `==`.
Fit fit_node(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b, std::vector<uint32_t> &order);

// In words, why they don't fit; no full stop.
std::string misfit(Fit fit, Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

}  // namespace pydag
