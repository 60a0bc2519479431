// SPDX-License-Identifier: Apache-2.0
//
// Puts a DAG together again: children before their node, and every shared object once.
//
// The memo belongs to the call, so each call gives fresh objects, and an exception in the middle
// leaves nothing behind.
#pragma once

#include "base/error.h"
#include "nodes/build.h"
#include "structure/paths.h"

namespace pydag {

// Where the leaves come from: `next()` gives the next one, in order.
class LeafSource {
public:
    virtual nb::object next() = 0;

protected:
    ~LeafSource() = default;
};

// Builds the DAG of `structure`. `doing` is what an error says was going on.
nb::object unflatten(const Structure &structure, LeafSource &leaves, const char *doing = "unflattening");

// From the leaves in an array that holds them meanwhile.
nb::object unflatten(const Structure &structure, PyObject *const *leaves, const char *doing = "unflattening");

// From an iterable of leaves; ValueError where there are too few or too many.
nb::object unflatten(const Structure &structure, nb::handle leaves);

}  // namespace pydag
