// SPDX-License-Identifier: Apache-2.0
//
// The difference of two nodes of two structures, in words: by all that counts in `==` of specs but children and
// sharing.
#pragma once

#include "structure/structure.h"

#include <string>

namespace pydag {

struct Words {
    std::string first, second;
};

// Whether two nodes, no aliases, are equal. May run the `==` of keys and aux_data.
bool are_alike(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

// A node in a few words: "list of 2", "dict with the keys ['a', 'b']".
std::string outline(Node node, PyObject *const *refs);

// The difference of two nodes that are not alike.
Words difference(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b);

// The first meta field that differs between two instances of a class with fields.
Words meta_difference(Kind kind, PyObject *const *refs_a, PyObject *const *refs_b);

// The difference of two nodes that are alike but not interchangeable (compare.h).
Words told_apart_by(Node node, PyObject *const *refs_a, PyObject *const *refs_b);

// What an error adds after the names of two classes: that one class was registered anew, or was defined again, as in a
// notebook's cell that is run twice; otherwise nothing. Runs no code of the classes but a metaclass's
// `__getattribute__`.
std::string class_difference(nb::handle expected, nb::handle found);

}  // namespace pydag
