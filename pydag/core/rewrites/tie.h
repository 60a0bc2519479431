// SPDX-License-Identifier: Apache-2.0
//
// Changes what is shared: rewrites of a structure in which some slots are led elsewhere.
#pragma once

#include "base/buffer.h"
#include "structure/structure.h"
#include "walks/flatten.h"

#include <vector>

namespace pydag {

// What stands at `path` stands at `others` too. ValueError where a path leads nowhere or the parts
// are structured in different ways; CycleError where an object would contain itself.
//
// `paths`: a tuple of tuples of entries; the first is that of the part which stays.
void tie(const Structure &structure, const Leaves &leaves, const FlattenOptions &options, nb::handle paths,
         StructureBuilder &result, Leaves &result_leaves);

// Each of `paths` gets a copy of its own of what stands there, with all that is below it: leaves by
// `copy_leaf`. Where all slots of an object are named, the first keeps the object.
void untie(const Structure &structure, const Leaves &leaves, const FlattenOptions &options, nb::handle paths,
           nb::handle copy_leaf, StructureBuilder &result, Leaves &result_leaves);

}  // namespace pydag
