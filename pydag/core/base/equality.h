// SPDX-License-Identifier: Apache-2.0
//
// Equality of keys, aux_data and the values of meta fields: identity, then `==`.
//
// What an object's `__eq__` raises passes. But an `==` that gives an array, as that of a number of NumPy's with a tuple
// does, says of no use that the two are equal, and they aren't. So tuples, lists and dicts are compared here item by
// item: their own `==` would raise what the array raises.
#pragma once

#include "base/capi.h"

namespace pydag {

// May run Python code.
bool are_equal_objects(nb::handle a, nb::handle b);
// The same by `!=`, as where trees are matched.
bool are_unequal_objects(nb::handle a, nb::handle b);

}  // namespace pydag
