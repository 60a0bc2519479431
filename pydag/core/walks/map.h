// SPDX-License-Identifier: Apache-2.0
//
// Flatten, call a function once for each distinct leaf, put the results in the leaves' places.
#pragma once

#include "walks/flatten.h"

namespace pydag {

enum class Extra { kNone, kPath, kAccessor };  // what the function gets before the leaf

// `rests`: a tuple of trees that are matched against `tree`; the function gets their answers behind
// the leaf. The function runs while the result is being built, as optree's does.
nb::object map(nb::handle function, nb::handle tree, nb::handle rests, const FlattenOptions &options, Extra extra);

// New containers around the same leaves.
nb::object copy(nb::handle tree, const FlattenOptions &options);

}  // namespace pydag
