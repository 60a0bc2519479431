// SPDX-License-Identifier: Apache-2.0
//
// The text of a spec: every node once, written as optree writes it, with YAML's marks for sharing:
// `&0` before an anchor, `*0` for each alias of it.
#pragma once

#include "structure/structure.h"

#include <string>

namespace pydag {

// `kWithOrders`: also in which order dicts were filled, where that isn't the order of their keys.
// `kBrief`: keys and aux_data are shown as in error messages, so no `__repr__` of theirs runs.
enum class SpecText { kWhole, kWithOrders, kBrief };

// The structure may be empty. Runs the `__repr__` of keys and aux_data, unless `kBrief`.
std::string spec_text(const Structure &structure, SpecText which);

}  // namespace pydag
