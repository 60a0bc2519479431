// SPDX-License-Identifier: Apache-2.0
//
// Which leaves belong to modules, and which are values. A leaf belongs to the nearest registered class above it. For
// the JAX boundary: the numbers of modules are configuration.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Two tuples of leaf numbers, ascending: the leaves that belong to a module along some path, and those of them that
// belong to no module along another path.
nb::object module_leaves(const Structure &structure);

// The numbers, ascending, of the leaves that have no identity, since they lie below a node whose leaves are values.
nb::object value_leaves(const Structure &structure);

}  // namespace pydag
