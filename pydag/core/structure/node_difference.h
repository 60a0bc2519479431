// SPDX-License-Identifier: Apache-2.0
//
// What tells two nodes of two structures apart, in words. Their children are not looked at, and
// neither is sharing; of the rest exactly that counts which counts in `==` of specs.
#pragma once

#include "structure/structure.h"

#include <string>

namespace pydag {

struct Words {
    std::string first, second;
};

// Keys and aux_data are compared by identity, then `==`, so this may run Python code. As the
// other two, not for aliases.
bool are_alike(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

// A node in a few words: "list of 2", "dict with the keys ['a', 'b']".
std::string outline(Node node, PyObject *const *refs);

// What two nodes have that tells them apart. They are not alike.
Words difference(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

}  // namespace pydag
