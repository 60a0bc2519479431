// SPDX-License-Identifier: Apache-2.0
//
// What tells two nodes of two structures apart, in words. Their children and sharing don't count.
// Everything else counts that counts in `==` of specs.
#pragma once

#include "structure/structure.h"

#include <string>

namespace pydag {

struct Words {
    std::string first, second;
};

// Whether two nodes are equal. Keys and aux_data are compared by identity, then `==`, so this may run
// Python code. Like the other two functions, not for aliases.
bool are_alike(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

// A node in a few words: "list of 2", "dict with the keys ['a', 'b']".
std::string outline(Node node, PyObject *const *refs);

// What tells two nodes apart that are not alike.
Words difference(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

}  // namespace pydag
