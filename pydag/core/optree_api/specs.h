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

}  // namespace pydag
