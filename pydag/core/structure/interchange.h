// SPDX-License-Identifier: Apache-2.0
//
// Whether a function that is given a tree could tell which of two structures it has. It could tell a dict that was
// filled in another order, and 1 from True, which are equal. Equality of structures ignores both, but what was compiled
// for one of the structures must not be run for the other.
#pragma once

#include "structure/node_difference.h"

namespace pydag {

// For two references at the same index of two nodes: whether keys were inserted in the same order, and are the same
// values; and all others are the same values (types/values.h). May run the `==` of what they hold.
bool are_interchangeable(PyObject *a, PyObject *b);

// For two nodes of one kind: whether all of their references are interchangeable.
bool are_interchangeable(Node node, PyObject *const *refs_a, PyObject *const *refs_b);

// For two equal nodes that aren't interchangeable: what tells them apart.
Words told_apart_by(Node node, PyObject *const *refs_a, PyObject *const *refs_b);

}  // namespace pydag
