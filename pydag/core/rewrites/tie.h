// SPDX-License-Identifier: Apache-2.0
//
// Changes what is shared: rewrites of a structure in which some slots are led elsewhere.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// A tree in which what stands at the first path stands at the others too. ValueError where a path leads
// nowhere or the parts are structured in different ways; CycleError where an object would contain
// itself. `paths`: a tuple of tuples of entries.
nb::object tie(nb::handle tree, nb::handle paths, const FlattenOptions &options);

// A tree in which each of `paths` gets a copy of its own of what stands there, with all that is below it: leaves by
// `copy_leaf`. Where all slots of an object are named, the first keeps the object.
nb::object untie(nb::handle tree, nb::handle paths, nb::handle copy_leaf, const FlattenOptions &options);

}  // namespace pydag
