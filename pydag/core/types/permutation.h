// SPDX-License-Identifier: Apache-2.0
//
// The place of each key of a mapping in traversal order, and the other way round.
#pragma once

#include "base/capi.h"

#include <memory>

namespace pydag {

// A few need no memory of their own.
class Permutation {
public:
    uint32_t *allocate(size_t count) {
        if (2 * count > kInline) heap_ = std::make_unique_for_overwrite<uint32_t[]>(2 * count);
        is_set_ = true;
        return data();
    }
    uint32_t *data() { return !is_set_ ? nullptr : heap_ ? heap_.get() : inline_; }
    const uint32_t *data() const { return const_cast<Permutation *>(this)->data(); }

private:
    static constexpr size_t kInline = 8;
    uint32_t inline_[kInline];
    bool is_set_ = false;
    std::unique_ptr<uint32_t[]> heap_;
};

// The ascending order of the items of a tuple; not set where they ascend already. Items that don't
// compare are sorted by the name of their type first, and where that fails too the order stands as it
// is. Runs the items' own comparisons, but for `are_strings`: exact ones.
Permutation ascending_order(nb::handle keys, bool are_strings);

}  // namespace pydag
