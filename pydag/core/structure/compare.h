// SPDX-License-Identifier: Apache-2.0
//
// Equality of structures: one pass over two flat arrays.
//
// Equality ignores the order in which dicts were filled, and 1 equals True. A function of a tree can see both. So a
// function that was compiled for one structure is run only for interchangeable ones.
#pragma once

#include "base/error.h"
#include "structure/structure.h"

#include <string>

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

// Where two structures differ, in words: empty only for structures that are equal. Names the first few nodes that
// differ by their paths and counts the others; doesn't compare below a node that differs. Linear in the nodes. May run
// Python code, as `==` of specs may. `exactly`: also names nodes that are equal but not interchangeable.
std::string explain(const Structure &a, const Structure &b, bool exactly, const Roots &roots);

// The namespaces of structures that are put together. The empty namespace goes with every other namespace in which the
// classes are registered in the same way.

// Whether structures of both may be put together: the names are equal, or one of them is empty.
bool are_compatible(nb::handle a, nb::handle b);

// ValueError if a class in a structure of the empty namespace is registered differently in this namespace, or not at
// all. `purpose`: "merged", "transformed", ... May run Python code.
void check_registrations(const Structure &structure, nb::handle namespace_, const char *purpose);

// The namespace of a structure that is made of two. ValueError where they don't go together.
nb::object merge_namespaces(const Structure &a, const Structure &b);

}  // namespace pydag
