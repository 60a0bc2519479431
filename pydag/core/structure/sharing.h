// SPDX-License-Identifier: Apache-2.0
//
// What a structure shares, and how much.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Nodes and leaves, each object once: aliases are not counted.
size_t num_distinct_nodes(const Structure &structure);

// The number of leaves when every path is followed: a Python int.
nb::object num_paths(const Structure &structure);

// A list of (index, kind, type), one for each shared object: `kind` a PyTreeKind, `type` None for a leaf. (Where
// the object is held says the listing: to write out all paths could take the square of the depth.)
nb::object shared_of(const Structure &structure);

}  // namespace pydag
