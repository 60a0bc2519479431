// SPDX-License-Identifier: Apache-2.0
//
// Matches one object with one node of a structure.
#pragma once

#include "nodes/open.h"

namespace pydag {

// Pushes the children of `object` on `stack`, in the order of the node's children, the last one first.
// ValueError if the object is not of the node's kind, class, arity, keys or aux_data. A dict, an
// OrderedDict and a defaultdict with the same keys are interchangeable; fields are matched by name.
void match_node(Node node, PyObject *const *refs, nb::handle object, Namespace &space, Stack &stack);

}  // namespace pydag
