// SPDX-License-Identifier: Apache-2.0
//
// Tells which objects were met before, by identity. Where nothing needs to be known of an object but
// that, it takes a fraction of an IdentityTable's memory: objects are made close to one another, and a
// word has a bit for each that could begin within a kilobyte.
//
// As with an IdentityTable, the caller must own each object, and no Python code runs.
#pragma once

#include "base/capi.h"
#include "base/large_memory.h"

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

    // Whether the object is new; from now on it isn't.
    bool add(PyObject *object) {
        const uintptr_t place = reinterpret_cast<uintptr_t>(object) / kSmallest, key = place / kBits;
        const uint64_t bit = uint64_t{1} << place % kBits;
        if (!last_ || last_->key != key) last_ = &find_or_add(key);
        if (last_->bits & bit) return false;
        last_->bits |= bit;
        return true;
    }

private:
    static constexpr size_t kBits = 64, kInlineBits = 5;
    // No two objects begin within so many bytes.
    static constexpr size_t kSmallest = sizeof(PyObject) < 16 ? 8 : 16;

    struct Region {
        uintptr_t key;
        uint64_t bits;  // 0: the place is free
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
