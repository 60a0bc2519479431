// SPDX-License-Identifier: Apache-2.0
//
// Puts another object in the place of one.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// The tree with `new_object` wherever it holds `old_object`, which is not opened. ValueError where it
// doesn't hold it, and for a value, which has no identity.
nb::object replace(nb::handle tree, nb::handle old_object, nb::handle new_object, FlattenOptions options);

}  // namespace pydag
