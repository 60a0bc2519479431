// SPDX-License-Identifier: Apache-2.0
//
// Where two structures part, in words.
#pragma once

#include "structure/structure.h"

#include <string>

namespace pydag {

// Empty for structures that are equal, and only for those. Every place at which they part is
// named by its path, the first few of them; below such a place nothing more is compared. Linear
// in the nodes. May run Python code, as `==` of specs may.
//
// `exactly`: places that are equal and not interchangeable (interchange.h) are named as well.
std::string explain(const Structure &a, const Structure &b, bool exactly = false);

}  // namespace pydag
