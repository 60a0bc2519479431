// SPDX-License-Identifier: Apache-2.0
//
// Flatten, call a function once for each distinct leaf, put the results in the leaves' places.
#pragma once

#include "walks/flatten.h"

namespace pydag {

enum class Extra { kNone, kPath, kAccessor };  // what the function gets before the leaf

// `rests`: a tuple of trees that are matched against `tree`; the function gets their answers behind
// the leaf. Where a class has an unflatten function, the function runs while the result is being built,
// as optree's does.
nb::object map(nb::handle function, nb::handle tree, nb::handle rests, const FlattenOptions &options, Extra extra);

// What the function is called for, of the leaves: `select(leaves, spec)` gives a list of bools, one for
// each leaf; None: for all. The other leaves stay as they are.
nb::object map_where(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select,
                     const FlattenOptions &options, Extra extra);

// The same without a result: what the function returns is dropped.
void for_each(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select, const FlattenOptions &options,
              Extra extra);

}  // namespace pydag
