// SPDX-License-Identifier: Apache-2.0
//
// Where two structures differ, in words.
#pragma once

#include "base/error.h"
#include "structure/structure.h"

#include <string>

namespace pydag {

// Empty only for structures that are equal. Names the first few nodes that differ by their paths and counts the others;
// doesn't compare below a node that differs. Linear in the nodes. May run Python code, as `==` of specs may.
// `exactly`: also names nodes that are equal but not interchangeable (compare.h).
std::string explain(const Structure &a, const Structure &b, bool exactly, const Roots &roots);

}  // namespace pydag
