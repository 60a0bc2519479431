// SPDX-License-Identifier: Apache-2.0
//
// Flattens a tree, calls a function once for each distinct leaf, and replaces the leaves by the results.
#pragma once

#include "walks/flatten.h"

namespace pydag {

enum class Extra { kNone, kPath, kAccessor };  // an argument of the function before the leaf

// `rests`: a tuple of trees that are matched against `tree`; the function gets their answers behind
// the leaf. Where a class has an unflatten function, the function runs while the result is being built,
// as optree's does.
nb::object map(nb::handle function, nb::handle tree, nb::handle rests, const FlattenOptions &options, Extra extra);

// The function is called only for some leaves: `select(leaves, spec)` returns a list of bools, one for each
// leaf; `select` may be None, which means all. The other leaves stay as they are.
nb::object map_where(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select,
                     const FlattenOptions &options, Extra extra);

// The same without a result: results of the function are dropped.
void for_each(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select, const FlattenOptions &options,
              Extra extra);

}  // namespace pydag
