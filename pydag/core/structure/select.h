// SPDX-License-Identifier: Apache-2.0
//
// Which leaves of a structure are meant, as far as their paths and the nodes above them say it. A shared leaf is
// meant if it is on any path to it. Linear in nodes and edges, however many paths there are.
#pragma once

#include "structure/structure.h"

namespace pydag {

// A list with a bool for each leaf: whether the pattern (path_pattern.h) matches the text of a path to it, with or
// without the dot that it may begin with. `depth`: how many levels below the root of the structure paths begin.
// Runs the `repr` of keys that aren't builtin.
nb::object leaves_by_path(const Structure &structure, nb::handle pattern, uint32_t depth);

// A list with a bool for each leaf: whether it lies below a node of a class for which `is_meant` answers true. It is
// asked once for each class of a node.
nb::object leaves_below(const Structure &structure, nb::handle is_meant);

}  // namespace pydag
