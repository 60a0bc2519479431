// SPDX-License-Identifier: Apache-2.0
//
// Equality of structures, and the order of their dicts: one pass over two flat arrays.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Sharing included. Keys and aux_data are compared by identity, then `==`. Neither structure is empty.
bool are_equal(const Structure &a, const Structure &b);

// Whether the dicts of two equal structures were filled in the same order, which equality doesn't look
// at. False where the nodes differ; keys are not compared, so no Python code runs.
bool have_same_order(const Structure &a, const Structure &b);

// Of two equal structures, whether all references are interchangeable (interchange.h).
bool are_interchangeable(const Structure &a, const Structure &b);

// Whether two references in the same place of two nodes of this kind are equal.
bool equal_refs(Kind kind, PyObject *a, PyObject *b);
// How many of a node's references are compared, from the first on. A custom node's entries are
// names for its children; they don't tell structures apart.
inline uint32_t num_compared_refs(Node node) { return node.kind == Kind::kCustom ? 2 : num_refs(node); }

}  // namespace pydag
