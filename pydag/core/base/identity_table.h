// SPDX-License-Identifier: Apache-2.0
//
// Maps objects to small integers by identity (`is`), never by `==`.
//
// The caller must own every object that it adds until the table is gone. Otherwise a temporary object could die within
// the walk, and a later object at the same address would be reported as shared with it. Runs no Python code.
#pragma once

#include "base/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace pydag {

class IdentityTable {
public:
    static constexpr uint32_t kNew = UINT32_MAX;

    IdentityTable() {}  // not `= default`: that could clear the memory
    IdentityTable(const IdentityTable &) = delete;
    IdentityTable &operator=(const IdentityTable &) = delete;
    ~IdentityTable() {
        if (slots_ != inline_slots_) std::free(slots_);  // or null
    }

    // The index with which `object` was added before. Adds it with `index` and returns kNew if it is new.
    uint32_t find_or_add(PyObject *object, uint32_t index) {
        if (!slots_ && entries_.size() < kFew) {
            const uint32_t known = find_among_few(object);
            if (known == kNew) entries_.push({object, index});
            return known;
        }
        if (entries_.size() * 2 >= capacity()) [[unlikely]]
            grow();
        uint32_t &slot = find_slot(object);
        if (slot) return entries_[slot - 1].index;
        entries_.push({object, index});
        slot = static_cast<uint32_t>(entries_.size());
        return kNew;
    }
    // The index of `object`, or kNew; adds nothing.
    uint32_t find(PyObject *object) const {
        if (!slots_) return find_among_few(object);
        const uint32_t slot = const_cast<IdentityTable *>(this)->find_slot(object);
        return slot ? entries_[slot - 1].index : kNew;
    }

private:
    struct Entry {
        PyObject *object;
        uint32_t index;
    };
    static constexpr int kInlineBits = 7;
    static constexpr size_t kFew = 4;  // up to this number, objects are compared one by one

    uint32_t find_among_few(PyObject *object) const {
        for (size_t i = 0; i < entries_.size(); ++i)
            if (entries_[i].object == object) return entries_[i].index;
        return kNew;
    }

    size_t capacity() const { return slots_ ? size_t{1} << bits_ : 0; }
    uint32_t &find_slot(PyObject *object) {
        const size_t mask = (size_t{1} << bits_) - 1;
        size_t i = first_index(object);
        while (slots_[i] && entries_[slots_[i] - 1].object != object) i = (i + 1) & mask;
        return slots_[i];
    }
    // Objects that are made one after the other lie side by side, and so do their slots: 16 to a cache line.
    size_t first_index(PyObject *object) const {
        constexpr int kLineBits = 4;
        const uintptr_t address = reinterpret_cast<uintptr_t>(object) / sizeof(PyObject);
        const uint64_t line = (address >> kLineBits) * 0x9E3779B97F4A7C15u;
        return line >> (64 - bits_ + kLineBits) << kLineBits | ((address + (line >> 32)) & ((1 << kLineBits) - 1));
    }
    // The inline slots are cleared only when they are first needed: most walks need none.
    void grow() {
        if (!slots_) {
            std::memset(inline_slots_, 0, sizeof inline_slots_);
            slots_ = inline_slots_;
        } else {
            const int bits = bits_ + 2;
            auto *const fresh = static_cast<uint32_t *>(std::calloc(size_t{1} << bits, sizeof(uint32_t)));
            if (!fresh) throw std::bad_alloc();
            ask_for_large_pages(fresh, sizeof(uint32_t) << bits);
            if (slots_ != inline_slots_) std::free(slots_);
            slots_ = fresh;
            bits_ = bits;
        }
        for (size_t i = 0; i < entries_.size(); ++i) find_slot(entries_[i].object) = static_cast<uint32_t>(i + 1);
    }

    // A slot holds the index of its entry, counted from 1. Small slots keep the table in the processor's cache.
    uint32_t *slots_ = nullptr;
    int bits_ = kInlineBits;
    uint32_t inline_slots_[size_t{1} << kInlineBits];
    Buffer<Entry, 32> entries_;
};

}  // namespace pydag
