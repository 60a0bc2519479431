// SPDX-License-Identifier: Apache-2.0
//
// Takes down the structure of a tree of which nothing is known, by looking alone: nothing is owned
// on the way, since no Python code runs.
#pragma once

#include "flatten_options.h"
#include "structure.h"

namespace pydag {

using Leaves = RefBuffer<96>;

// False where Python code would have to run, for a callback, a class that was never looked up or a
// key that is no string; and where something is wrong. Then `draft` and `leaves` are empty again.
bool survey(PyObject *tree, const FlattenOptions &options, Draft &draft, Leaves &leaves);

}  // namespace pydag
