// SPDX-License-Identifier: Apache-2.0
//
// Which class a leaf belongs to: its nearest registered owner, looked for upwards through builtin
// containers. The JAX boundary asks whether that is a module, whose numbers are configuration.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Two tuples of leaves, by their positions, ascending: those that belong to modules along some path; of
// these, those that belong to no module along another path. In one pass over nodes and edges.
nb::object module_leaves(const Structure &structure);

}  // namespace pydag
