// SPDX-License-Identifier: Apache-2.0
//
// The operations of optree's that make specs of specs. Where specs don't go together they raise ValueError.
#pragma once

#include "spec/spec.h"
#include "walks/options.h"

namespace pydag {

// Writes `outer`, with each leaf replaced by `inner`. What replaces a shared leaf is one object in all
// slots of the leaf. A tuple has no identity, so it is written once for each slot, and its parts are shared.
void compose(const Structure &outer, const Structure &inner, StructureBuilder &result);

// Writes the smallest structure that both are prefixes of: `first`, with its leaves replaced by what `second` has at
// the same paths. Kinds and sharing are those of `first`; what replaces a leaf has within it the sharing of `second`.
// SharingError if a shared leaf would be replaced by two different structures.
void common_suffix(const Structure &first, const Structure &second, StructureBuilder &result);

// Calls `node_function(spec)` for each distinct node and each occurrence of a tuple, after everything below it,
// and `leaf_function(spec)` for each distinct leaf. `spec` is that of the node alone, with a leaf in each
// slot. Both return specs; that of a node must have as many slots. A function that is null replaces nothing.
// One object remains one object, unless a tuple replaces it, whose parts are then shared.
nb::object transform(const Spec &spec, nb::handle node_function, nb::handle leaf_function);

// The spec of `collection`, a node of any kind whose children are specs. Sharing within each of these specs
// is kept; between them nothing is shared, even if one spec stands in two slots. An object that is no
// node gives the spec of a leaf, with a warning.
nb::object collect_specs(nb::handle collection, const FlattenOptions &options);

// optree's PyTreeSpec, which has no sharing: every path is written out. ValueError if that would be too large, or if
// optree doesn't open a class as the structure does.
nb::object to_treespec(const Structure &structure);

// The parts of a spec, as specs.

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
