// SPDX-License-Identifier: Apache-2.0
//
// A set of objects by identity. It takes a fraction of the memory of an IdentityTable: one word has a bit for each
// address within a kilobyte at which an object could begin, and objects that are made together lie close to one
// another. The caller must own each object. Runs no Python code.
#pragma once

#include "base/capi.h"
#include "base/memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace pydag {

class ObjectSet {
public:
    ObjectSet() {}  // not `= default`: that could clear the memory
    ObjectSet(const ObjectSet &) = delete;
    ObjectSet &operator=(const ObjectSet &) = delete;
    ~ObjectSet() {
        if (regions_ != inline_regions_) std::free(regions_);  // or null
    }

    // Adds an object. Returns whether it is new.
    bool add(PyObject *object) {
        const uintptr_t number = reinterpret_cast<uintptr_t>(object) / kSmallest, key = number / kBits;
        const uint64_t bit = uint64_t{1} << number % kBits;
        if (!last_ || last_->key != key) last_ = &find_or_add(key);
        if (last_->bits & bit) return false;
        last_->bits |= bit;
        return true;
    }

private:
    static constexpr size_t kBits = 64, kInlineBits = 5;
    // Two objects begin at least this number of bytes apart.
    static constexpr size_t kSmallest = sizeof(PyObject) < 16 ? 8 : 16;

    struct Region {
        uintptr_t key;
        uint64_t bits;  // 0: the region is unused
    };

    Region &find_or_add(uintptr_t key) {
        if (2 * used_ >= size()) grow();
        Region &region = find(key);
        if (!region.bits) region.key = key, ++used_;
        return region;
    }
    size_t size() const { return regions_ ? size_t{1} << bits_ : 0; }
    Region &find(uintptr_t key) {
        const size_t mask = size() - 1;
        size_t i = key * 0x9E3779B97F4A7C15u >> (64 - bits_);
        while (regions_[i].bits && regions_[i].key != key) i = (i + 1) & mask;
        return regions_[i];
    }
    void grow() {
        if (!regions_) {
            regions_ = inline_regions_;
            std::memset(inline_regions_, 0, sizeof inline_regions_);
            return;
        }
        const size_t old_size = size();
        auto *const fresh = static_cast<Region *>(std::calloc(4 * old_size, sizeof(Region)));
        if (!fresh) throw std::bad_alloc();
        ask_for_large_pages(fresh, 4 * old_size * sizeof(Region));
        Region *const old = std::exchange(regions_, fresh);
        bits_ += 2;
        for (size_t i = 0; i < old_size; ++i)
            if (old[i].bits) find(old[i].key) = old[i];
        if (old != inline_regions_) std::free(old);
    }

    Region *regions_ = nullptr, *last_ = nullptr;
    size_t used_ = 0;
    int bits_ = kInlineBits;
    Region inline_regions_[size_t{1} << kInlineBits];
};

}  // namespace pydag
