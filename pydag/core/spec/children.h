// SPDX-License-Identifier: Apache-2.0
//
// The parts of a spec, as specs.
#pragma once

#include "spec/spec.h"

namespace pydag {

// The spec of the root's child number `index`, which must exist.
nb::object child_spec(const Structure &structure, uint32_t index);

// A list with the spec of each of the root's slots; one spec for slots with one object.
nb::object children_specs(const Structure &structure);

// A leaf, in a structure with these options.
nb::object leaf_spec(bool none_is_leaf, nb::handle namespace_);

// One node with a leaf in each of its slots; the leaves are never shared.
nb::object one_level_spec(Node node, PyObject *const *refs, bool none_is_leaf, nb::handle namespace_);

// Whether the root is a node, and all that it holds are leaves.
bool is_one_level(const Structure &structure);

}  // namespace pydag
