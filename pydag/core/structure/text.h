// SPDX-License-Identifier: Apache-2.0
//
// The text of a spec: every node once, in the field's notation, with YAML's marks for sharing:
// `&0` before an anchor, `*0` for each alias of it.
#pragma once

#include "structure/structure.h"

#include <string>

namespace pydag {

// `with_orders`: also in which order dicts were filled, where that isn't the order of their keys. The
// structure may be empty. Runs the `__repr__` of keys and aux_data.
std::string spec_text(const Structure &structure, bool with_orders);

}  // namespace pydag
