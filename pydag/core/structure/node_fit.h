// SPDX-License-Identifier: Apache-2.0
//
// Whether a node of a prefix fits a node of a tree: mappings of all kinds with the same keys fit one another. The order
// of keys, default factories and the limits of deques don't count.
#pragma once

#include "structure/structure.h"

#include <string>
#include <vector>

namespace pydag {

enum class Fit { kFits, kOtherKind, kOtherCount, kOtherClass, kOtherKeys, kOtherData };

// If they fit, slot i of `a` goes with slot `order[i]` of `b`; `order` is empty where the order is the same. Neither
// node is a leaf or an alias. May run the `==` of keys and aux_data.
Fit fit_node(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b, std::vector<uint32_t> &order);

// The reason why they don't fit, without a full stop.
std::string misfit(Fit fit, Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

}  // namespace pydag
