// SPDX-License-Identifier: Apache-2.0
//
// What a node has beside its class and its children, as a Python object: optree's word is node data.
#pragma once

#include "structure/structure.h"

namespace pydag {

// The keys of a mapping, as a list in the order of traversal; with its default factory before them,
// of a defaultdict; the class of a namedtuple or of a struct sequence; the limit of a deque; the
// aux_data of a custom node. Of a class that is opened by its fields their names, and the values of
// its meta fields. None for all others.
nb::object node_data(Kind kind, PyObject *const *refs);

}  // namespace pydag
