// SPDX-License-Identifier: Apache-2.0
//
// Builds a node from its children: the other half of children.h.
#pragma once

#include "children.h"

namespace pydag {

// Builds the node of this kind with the references `refs` from the objects in `values` from `base`
// on, which it takes. On an exception nothing is lost: `values` still owns what it has.
nb::object build_node(Kind kind, PyObject *const *refs, Stack &values, size_t base);

}  // namespace pydag
