// SPDX-License-Identifier: Apache-2.0
//
// Whether two equal structures could be told apart by a function that is given a tree of either. A
// dict that was filled in another order could, and so could 1 in the place of True: equality of
// structures doesn't look at these, but what was compiled for the one must not be run for the other.
#pragma once

#include "structure/node_difference.h"

namespace pydag {

// Of two references in the same place of two nodes, which are equal: whether keys were put in in the
// same order, and values are of the same type, those in tuples, lists and dicts as well. May run the
// `==` of keys in dicts that are aux_data.
bool are_interchangeable(PyObject *a, PyObject *b);

// Of two nodes that are equal: whether all of their references are interchangeable.
bool are_interchangeable(Node node, PyObject *const *refs_a, PyObject *const *refs_b);

// Of two nodes that are equal and aren't interchangeable, what tells them apart.
Words told_apart_by(Node node, PyObject *const *refs_a, PyObject *const *refs_b);

}  // namespace pydag
