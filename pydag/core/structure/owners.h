// SPDX-License-Identifier: Apache-2.0
//
// Which leaves belong to modules. A leaf belongs to its nearest registered owner, which is searched upwards
// through builtin containers. The JAX boundary asks for this: the numbers of modules are configuration.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Two tuples of leaf numbers, ascending. First: the leaves that belong to a module along some path. Second:
// those of them that belong to no module along another path. One pass over nodes and edges.
nb::object module_leaves(const Structure &structure);

}  // namespace pydag
