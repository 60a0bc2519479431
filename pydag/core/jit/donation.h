// SPDX-License-Identifier: Apache-2.0
//
// Which leaves a compiled function may be given for good.
//
// XLA takes a donated array once, and refuses a call that has it at another place, too. A leaf without identity may
// stand at several places: then copies are donated, and the array itself is left to who holds it.
#pragma once

#include "walks/flatten_pure.h"

#include <cstdint>
#include <vector>

namespace pydag {

// Puts a copy in the place of each donated leaf that is passed at another place, too. `passed` has all, those included.
void copy_donated(Leaves &leaves, const std::vector<uint32_t> &passed, const std::vector<uint32_t> &donated,
                  nb::handle copy);

}  // namespace pydag
