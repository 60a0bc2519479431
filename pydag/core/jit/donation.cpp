// SPDX-License-Identifier: Apache-2.0
#include "jit/donation.h"

#include "base/object_set.h"

namespace pydag {
void copy_donated(Leaves &leaves, const std::vector<uint32_t> &passed, const std::vector<uint32_t> &donated,
                  nb::handle copy) {
    ObjectSet met, repeated;
    for (const uint32_t position : passed)
        if (!met.add(leaves[position])) repeated.add(leaves[position]);
    for (const uint32_t position : donated)
        if (!repeated.add(leaves[position])) leaves.replace(position, call(copy, nb::handle(leaves[position])));
}

}  // namespace pydag
