// SPDX-License-Identifier: Apache-2.0
//
// Prefixes: a structure, or a node of it, that fits the upper part of another structure.
#pragma once

#include "structure/structure.h"

#include <string>
#include <vector>

namespace pydag {

enum class Fit { kFits, kOtherKind, kOtherCount, kOtherClass, kOtherKeys, kOtherData };

// Whether a node of a prefix fits a node of a tree: mappings of all kinds with the same keys fit one another. The order
// of keys, default factories and the limits of deques don't count.
//
// If they fit, slot i of `a` goes with slot `order[i]` of `b`; `order` is empty where the order is the same. Neither
// node is a leaf or an alias. May run the `==` of keys and aux_data.
Fit fit_node(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b, std::vector<uint32_t> &order);

// The reason why they don't fit, without a full stop.
std::string misfit(Fit fit, Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

// Whether `b` is `a` with leaves replaced by subtrees, and each shared object of `a` is one object in `b`, which may
// share more. Then `flatten_up_to` of `a` has one answer for every tree with the structure `b`. `strict`: besides, a
// leaf is replaced by a node, or `b` shares more. May run the `==` of keys and aux_data. Linear in the nodes of both.
bool is_prefix(const Structure &a, const Structure &b, bool strict);

}  // namespace pydag
