// SPDX-License-Identifier: Apache-2.0
//
// Replaces one object of a tree by another.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// The tree, with `old_object` replaced by `new_object` in all of its slots. `old_object` is not opened.
// ValueError if the tree doesn't hold it, or if it is a value, which has no identity.
nb::object replace(nb::handle tree, nb::handle old_object, nb::handle new_object, FlattenOptions options);

}  // namespace pydag
