// SPDX-License-Identifier: Apache-2.0
//
// The way from the root to each leaf, read from the structure alone: to a shared object it is the
// way to its anchor.
#pragma once

#include "base/error.h"
#include "structure/structure.h"

namespace pydag {

// The entry of a node's child: an index, a key, the name of a field, or what the flatten function
// said.
nb::object entry_of(Kind kind, PyObject *const *refs, uint32_t child);

// The class of a node; null for leaves and aliases.
nb::object type_of(Kind kind, PyObject *const *refs);

// The same child as an error message shows it.
Step step_of(Kind kind, PyObject *const *refs, uint32_t child);

// The paths to the nodes at these positions, which ascend: as an error message shows them, and as
// tuples of entries.
std::vector<Steps> steps_to(const Structure &structure, const std::vector<uint32_t> &nodes);
std::vector<nb::object> slot_paths(const Structure &structure, const std::vector<uint32_t> &nodes);

// A list with the path of each leaf: a tuple of entries.
nb::object leaf_paths(const Structure &structure);
// A list with the optree.PyTreeAccessor of each leaf.
nb::object leaf_accessors(const Structure &structure);

}  // namespace pydag
