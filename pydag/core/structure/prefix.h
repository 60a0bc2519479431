// SPDX-License-Identifier: Apache-2.0
//
// Which structures are prefixes of which.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Whether `b` arises from `a` by putting subtrees in the place of leaves, and what is one object in
// `a` is one in `b`. So what `a` is flattened up to exists, and is unambiguous, in every tree with
// the structure `b`, which may share more. `strict`: besides, a node stands for a leaf, or `b`
// shares more. May run the keys' and the aux_data's own `==`. Linear in the nodes of `a`.
bool is_prefix(const Structure &a, const Structure &b, bool strict);

}  // namespace pydag
