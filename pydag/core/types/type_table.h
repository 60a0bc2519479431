// SPDX-License-Identifier: Apache-2.0
//
// What the registry found out about classes, by address.
#pragma once

#include "types/namespace.h"

#include <vector>

namespace pydag {

// Open addressing, by address. A remembered heap type carries a weak reference whose callback
// empties all tables, before the type's memory can be used again.
class TypeTable {
public:
    const TypeInfo *find(PyTypeObject *type) const {
        const size_t mask = entries_.size() - 1;
        for (size_t i = place(type);; i = (i + 1) & mask) {
            if (entries_[i].type == type) return &entries_[i].info;
            if (!entries_[i].type) return nullptr;
        }
    }
    void add(PyTypeObject *type, nb::object weakref, const TypeInfo &info) {
        if (++used_ * 2 > entries_.size()) grow();
        if (info.registration) owned_.push_back(nb::borrow(info.registration));
        if (weakref.is_valid()) owned_.push_back(std::move(weakref));
        insert({type, info});
    }

private:
    struct Entry {
        PyTypeObject *type;
        TypeInfo info;
    };
    size_t place(PyTypeObject *type) const { return (hash_address(type) >> 32) & (entries_.size() - 1); }
    void insert(const Entry &entry) {
        size_t i = place(entry.type);
        while (entries_[i].type) i = (i + 1) & (entries_.size() - 1);
        entries_[i] = entry;
    }
    void grow() {
        std::vector<Entry> old(entries_.size() * 2);
        old.swap(entries_);
        for (const Entry &entry : old)
            if (entry.type) insert(entry);
    }

    std::vector<Entry> entries_ = std::vector<Entry>(64);
    std::vector<nb::object> owned_;
    size_t used_ = 0;
};

}  // namespace pydag
