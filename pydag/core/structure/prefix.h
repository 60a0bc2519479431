// SPDX-License-Identifier: Apache-2.0
//
// Which structures are prefixes of which.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Whether `b` is `a` with leaves replaced by subtrees, and each shared object of `a` is one object in `b`, which may
// share more. Then `flatten_up_to` of `a` has one answer for every tree with the structure `b`. `strict`: besides, a
// leaf is replaced by a node, or `b` shares more. May run the `==` of keys and aux_data. Linear in the nodes of both.
bool is_prefix(const Structure &a, const Structure &b, bool strict);

}  // namespace pydag
