// SPDX-License-Identifier: Apache-2.0
//
// Equality of structures: one pass over two flat arrays.
//
// Equality ignores the order in which dicts were filled, and 1 equals True. A function of a tree can see both. So a
// function that was compiled for one structure is run only for interchangeable ones.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Whether two structures consist of the same nodes and of the very same references.
bool is_same(const Structure &a, const Structure &b);

// Sharing counts. Keys and aux_data are compared by identity, then `==`. Neither structure is empty.
bool are_equal(const Structure &a, const Structure &b);

// Whether the dicts of two equal structures were filled in the same order. False where the nodes differ; keys are not
// compared, so no Python code runs.
bool have_same_order(const Structure &a, const Structure &b);

// Whether a function could not tell the structures apart. Neither is empty. May run the `==` of what they hold.
bool are_interchangeable(const Structure &a, const Structure &b);
// The same of two nodes of one kind; and of two references at the same index of two nodes: keys must have been inserted
// in the same order and be the same values, all others must be the same values (types/values.h).
bool are_interchangeable(Node node, PyObject *const *refs_a, PyObject *const *refs_b);
bool are_interchangeable(PyObject *a, PyObject *b);

// Whether references of this role count when nodes are compared. The entries that a flatten function gives
// don't: they only name the children.
constexpr bool is_compared(Role role) { return role != Role::kEntries; }
// Whether two references of the same role are equal.
bool equal_refs(Role role, PyObject *a, PyObject *b);

}  // namespace pydag
