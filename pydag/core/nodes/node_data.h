// SPDX-License-Identifier: Apache-2.0
//
// What a node has besides its class and its children, as a Python object. optree calls this node data.
#pragma once

#include "structure/structure.h"

namespace pydag {

// For a mapping its keys, as a list in the order of traversal; for a defaultdict its default factory, too,
// before them; for a namedtuple or struct sequence its class; for a deque its limit; for a custom node its
// aux_data; for a class that is opened by its fields their names, and the values of its meta fields. None
// for all other nodes.
nb::object node_data(Kind kind, PyObject *const *refs);

}  // namespace pydag
