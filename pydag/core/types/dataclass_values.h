// SPDX-License-Identifier: Apache-2.0
//
// The values that a frozen dataclass is compared by. `@dataclass` writes how it is compared and hashed, as a tuple of
// these values: so they say what it is, down to the sign of zero.
#pragma once

#include "base/capi.h"

namespace pydag {

// A tuple; null for any other object, and for a class that says itself how it is compared or hashed.
nb::object dataclass_values(PyObject *object);

}  // namespace pydag
