// SPDX-License-Identifier: Apache-2.0
//
// Takes down the structure of a tree of which nothing is known, by looking alone: nothing is owned
// on the way, since no Python code runs.
#pragma once

#include "structure/structure.h"
#include "walks/options.h"

namespace pydag {

using Leaves = RefBuffer<96>;

// False where Python code would have to run, for a callback, a class that was never looked up or a
// key that is no string; and where something is wrong. Then `builder` and `leaves` are empty again.
bool flatten_pure(PyObject *tree, const FlattenOptions &options, StructureBuilder &builder, Leaves &leaves);

}  // namespace pydag
