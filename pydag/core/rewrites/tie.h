// SPDX-License-Identifier: Apache-2.0
//
// Changes what is shared: rewrites a structure so that some of its slots hold other nodes.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// A tree in which the object at the first path stands at the other paths, too. ValueError if a path leads
// nowhere, or if the objects are structured differently; CycleError if an object would contain
// itself. `paths`: a tuple of tuples of entries.
nb::object tie(nb::handle tree, nb::handle paths, const FlattenOptions &options);

// A tree in which each of `paths` gets its own copy of the object that stands there, with all that is below
// it; `copy_leaf` copies the leaves. If the paths name all slots of an object, the first one keeps the object.
nb::object untie(nb::handle tree, nb::handle paths, nb::handle copy_leaf, const FlattenOptions &options);

}  // namespace pydag
