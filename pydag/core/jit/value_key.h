// SPDX-License-Identifier: Apache-2.0
//
// A value as bytes, so that values are found in a dict by what they are: two have the same bytes if they are the same
// value (types/values.h).
//
// No code of the user's runs. So only this is written by what it is: exact instances of builtin classes, tuples that
// are compared by their items alone, and NumPy's own scalars and dtypes. Any other object is written by its address.
// So bytes are those of a value only as long as somebody owns it, or another object that has the same bytes.
#pragma once

#include "base/capi.h"

namespace pydag {

// A bytes object. Of a value that is very long or deeply nested it has the address alone.
nb::object value_key(nb::handle value);

}  // namespace pydag
