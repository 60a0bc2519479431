// SPDX-License-Identifier: Apache-2.0
//
// Maps objects to small integers by identity (`is`), never by `==`.
//
// The caller must own every object that it adds until the table is gone. Without that a temporary
// made by a custom flatten function could die within the walk, and a later object allocated at the
// same address would be reported as shared with it.
//
// Runs no Python code while it probes: pointers are hashed and compared, objects are not. So a
// lookup cannot re-enter the table.
#pragma once

#include "capi.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace pydag {

// Spreads the bits of an address that differ between objects over the whole word.
inline uint64_t hash_address(const void *address) {
    return (reinterpret_cast<uintptr_t>(address) >> 4) * 0x9E3779B97F4A7C15u;
}

class IdentityTable {
public:
    static constexpr uint32_t kNew = UINT32_MAX;

    IdentityTable() = default;
    IdentityTable(const IdentityTable &) = delete;
    IdentityTable &operator=(const IdentityTable &) = delete;
    ~IdentityTable() {
        if (slots_ != inline_slots_) std::free(slots_);
    }

    // The index that `object` was added with. kNew: it was not there, and now is, as `index`.
    uint32_t find_or_add(PyObject *object, uint32_t index) {
        if (used_ * 2 >= capacity()) [[unlikely]]
            grow();
        Slot &slot = find_slot(object);
        if (slot.object) return slot.index;
        slot = {object, index};
        ++used_;
        return kNew;
    }
    // The index of `object`, or kNew; adds nothing.
    uint32_t find(PyObject *object) const {
        if (!slots_) return kNew;
        const Slot &slot = const_cast<IdentityTable *>(this)->find_slot(object);
        return slot.object ? slot.index : kNew;
    }

private:
    struct Slot {
        PyObject *object;
        uint32_t index;
    };
    static constexpr int kInlineBits = 6;

    size_t capacity() const { return slots_ ? size_t{1} << bits_ : 0; }
    Slot &find_slot(PyObject *object) {
        const size_t mask = capacity() - 1;
        size_t i = hash_address(object) >> (64 - bits_);
        while (slots_[i].object && slots_[i].object != object) i = (i + 1) & mask;
        return slots_[i];
    }
    // The inline slots are cleared only when the first object comes: most walks need none.
    void grow() {
        if (!slots_) {
            slots_ = inline_slots_;
            std::memset(static_cast<void *>(inline_slots_), 0, sizeof inline_slots_);
            return;
        }
        Slot *const old = slots_;
        const size_t old_capacity = capacity();
        Slot *const fresh = static_cast<Slot *>(std::calloc(old_capacity * 4, sizeof(Slot)));
        if (!fresh) throw std::bad_alloc();
        slots_ = fresh;
        bits_ += 2;
        for (size_t i = 0; i < old_capacity; ++i)
            if (old[i].object) find_slot(old[i].object) = old[i];
        if (old != inline_slots_) std::free(old);
    }

    Slot *slots_ = nullptr;
    size_t used_ = 0;
    int bits_ = kInlineBits;
    Slot inline_slots_[size_t{1} << kInlineBits];
};

}  // namespace pydag
