// SPDX-License-Identifier: Apache-2.0
//
// The text of a spec: every node once, in optree's notation, with YAML's marks for sharing: `&0` before an anchor, `*0`
// for each alias.
#pragma once

#include "structure/structure.h"

#include <string>

namespace pydag {

// `kWithOrders`: also the order in which dicts were filled, if it isn't the order of traversal. `kBrief`: keys and
// aux_data as in error messages, without their `__repr__`.
enum class SpecText { kWhole, kWithOrders, kBrief };

// The structure may be empty. Runs the `__repr__` of keys and aux_data, unless `kBrief`.
std::string spec_text(const Structure &structure, SpecText which);

}  // namespace pydag
