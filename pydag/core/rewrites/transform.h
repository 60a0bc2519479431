// SPDX-License-Identifier: Apache-2.0
//
// Structures whose nodes and leaves are replaced by what functions say.
#pragma once

#include "spec/spec.h"

namespace pydag {

// Calls `node_function(spec)` for each distinct node, and for each tuple, after all that it holds, and
// `leaf_function(spec)` for each distinct leaf, with a spec of that node alone: a leaf in each of its
// slots. Both return specs, the former one that has as many slots; null: nothing is replaced. What
// was one object stays one, unless a tuple stands for it, whose parts are then shared.
nb::object transform(const Spec &spec, nb::handle node_function, nb::handle leaf_function);

}  // namespace pydag
