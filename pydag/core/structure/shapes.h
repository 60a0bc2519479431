// SPDX-License-Identifier: Apache-2.0
//
// Whether two leaves are arrays of different shapes. Runs Python code: `shape` may be a property.
#pragma once

#include "base/capi.h"

namespace pydag {

bool differ_in_shape(nb::handle leaf, nb::handle other);

}  // namespace pydag
