// SPDX-License-Identifier: Apache-2.0
//
// Selects leaves of a structure by their paths or by the nodes above them. A shared leaf is selected if any of its
// paths selects it. Linear in nodes and edges.
#pragma once

#include "structure/structure.h"

namespace pydag {

// A list with a bool for each leaf: whether the pattern (path_pattern.h) matches the text of a path to it, with or
// without the dot at its beginning. `depth`: how many levels below the root paths begin. Runs the `repr` of keys.
nb::object leaves_by_path(const Structure &structure, nb::handle pattern, uint32_t depth);

// A list with a bool for each leaf: whether it lies below a node of a class for which `is_meant`, which is called once
// for each class, returns true; or which is a subclass of `is_meant`, if that is a class.
nb::object leaves_below(const Structure &structure, nb::handle is_meant);

// The leaves that belong to modules: two tuples of leaf numbers, ascending, the leaves that belong to a module along
// some path, and those of them that belong to no module along another path. A leaf belongs to the nearest registered
// class above it. For the JAX boundary: the numbers of modules are configuration.
nb::object module_leaves(const Structure &structure);

// The numbers, ascending, of the leaves that have no identity, since they lie below a node whose leaves are values.
nb::object value_leaves(const Structure &structure);

}  // namespace pydag
