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
// Python code. Like the next three functions, not for aliases.
bool are_alike(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

// A node in a few words: "list of 2", "dict with the keys ['a', 'b']".
std::string outline(Node node, PyObject *const *refs);

// What tells two nodes apart that are not alike.
Words difference(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

// The first meta field that differs between two instances of a class with fields.
Words meta_difference(Kind kind, PyObject *const *refs_a, PyObject *const *refs_b);

// For two nodes that are alike and not interchangeable (compare.h): what tells them apart.
Words told_apart_by(Node node, PyObject *const *refs_a, PyObject *const *refs_b);

// What an error adds after the names of two classes: that one class was registered anew; how to go on if a class was
// defined again, as in a notebook's cell that is run twice; otherwise nothing. Runs no code of the classes but a
// metaclass's `__getattribute__`.
std::string class_difference(nb::handle expected, nb::handle found);

}  // namespace pydag
