// SPDX-License-Identifier: Apache-2.0
//
// Puts a DAG together again: children before their node, and every shared object once.
//
// The memo belongs to the call, so each call gives fresh objects, and an exception in the middle
// leaves nothing behind.
#pragma once

#include "base/error.h"
#include "nodes/build.h"
#include "walks/options.h"

namespace pydag {

// From an array that owns the leaves meanwhile. An error says that it occurred while `doing`.
nb::object unflatten(const Structure &structure, PyObject *const *leaves, const char *doing = "unflattening");

// From an iterable of leaves; ValueError where there are too few or too many.
nb::object unflatten(const Structure &structure, nb::handle leaves);

}  // namespace pydag
