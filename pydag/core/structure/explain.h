// SPDX-License-Identifier: Apache-2.0
//
// Where two structures differ, in words.
#pragma once

#include "base/error.h"
#include "structure/structure.h"

#include <string>

namespace pydag {

// Empty for structures that are equal, and only for those. The first few nodes that differ are named by
// their paths, the others are counted; below a node that differs nothing more is compared. Linear
// in the nodes. May run Python code, as `==` of specs may.
//
// `exactly`: nodes that are equal and not interchangeable (compare.h) are named as well.
std::string explain(const Structure &a, const Structure &b, bool exactly, const Roots &roots);

}  // namespace pydag
