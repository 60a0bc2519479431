// SPDX-License-Identifier: Apache-2.0
//
// Takes apart a tree of which nothing is known, without running Python code; so with the GIL nothing has to be owned
// on the way.
#pragma once

#include "structure/structure.h"
#include "walks/options.h"

namespace pydag {

using Leaves = RefBuffer<96>;

// The object at each node of a structure, by its position; at an alias it is the anchor's.
using NodeObjects = RefBuffer<48>;

// False if Python code would have to run (for a callback, a class that was never looked up or a key that is
// not a string), and if anything is wrong. Then everything that it fills is empty again.
// `objects`: null if the caller doesn't need them.
bool flatten_pure(PyObject *tree, const FlattenOptions &options, StructureBuilder &builder, Leaves &leaves,
                  NodeObjects *objects);

}  // namespace pydag
