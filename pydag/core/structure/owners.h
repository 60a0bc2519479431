// SPDX-License-Identifier: Apache-2.0
//
// What the owners of leaves say about them: which leaves belong to modules, and which are values. A leaf belongs to its
// nearest registered owner, which is searched upwards through builtin containers. The JAX boundary asks for this: the
// numbers of modules are configuration.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Two tuples of leaf numbers, ascending. First: the leaves that belong to a module along some path. Second:
// those of them that belong to no module along another path. One pass over nodes and edges.
nb::object module_leaves(const Structure &structure);

// The numbers of the leaves that have no identity, since they stand below a node whose leaves are values: one object
// may be several of them. Ascending.
nb::object value_leaves(const Structure &structure);

}  // namespace pydag
