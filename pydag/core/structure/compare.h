// SPDX-License-Identifier: Apache-2.0
//
// Equality of structures, and the order of their dicts: one pass over two flat arrays.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Sharing counts. Keys and aux_data are compared by identity, then `==`. Neither structure is empty.
bool are_equal(const Structure &a, const Structure &b);

// Whether the dicts of two equal structures were filled in the same order, which equality doesn't look
// at. False where the nodes differ; keys are not compared, so no Python code runs.
bool have_same_order(const Structure &a, const Structure &b);

// Whether a function could not tell the structures apart (interchange.h). Neither is empty.
bool are_interchangeable(const Structure &a, const Structure &b);

// Whether references of this role count when nodes are compared. The entries that a flatten function gives
// don't: they only name the children.
constexpr bool is_compared(Role role) { return role != Role::kEntries; }
// Whether two references of the same role are equal.
bool equal_refs(Role role, PyObject *a, PyObject *b);

}  // namespace pydag
