// SPDX-License-Identifier: Apache-2.0
//
// What is known of classes, by address.
//
// A class may die, and another one get its address. So an entry has a weak reference to its class, and
// counts only while that is still there. A callback at its death would not be enough: a collector
// that finds the class in garbage may clear the weak reference without calling back. A class that is no heap
// type lives for ever and needs none.
#pragma once

#include "base/weak_reference.h"

#include <utility>
#include <vector>

namespace pydag {

template <class Value>
class ClassTable {
public:
    struct Entry {
        PyTypeObject *type = nullptr;
        nb::object weakref;  // null: the class doesn't die
        Value value;
        bool is_known = true;  // false: what was known has been taken out

        bool is_alive() const {
            return is_known && (!weakref.is_valid() || load_shared(*referent_address(weakref)) == as_object(type));
        }
    };

    // Null where nothing is known of the class.
    const Entry *find(PyTypeObject *type) const {
        const Entry *const entry = find_address(type);
        return entry && entry->is_alive() ? entry : nullptr;
    }
    // Takes out what is known of the class at this address, for the caller to release; false if that is nothing.
    bool take_out(PyTypeObject *type, Entry &to) {
        auto *const entry = const_cast<Entry *>(find_address(type));
        if (!entry || !entry->is_known) return false;
        to = std::exchange(*entry, {type, nb::object(), Value(), false});
        return true;
    }
    // Whether `make_room` has to come before the next `add`.
    bool is_full() const { return (used_ + 1) * 2 > entries_.size(); }
    // Forgets the classes that are gone. Entries move; releasing those that are gone runs no Python code
    // if releasing a Value runs none.
    void make_room() {
        size_t num_alive = 0, size = kSmallest;
        for (const Entry &entry : entries_) num_alive += entry.type && entry.is_alive();
        while (size < num_alive * 4) size *= 2;
        std::vector<Entry> old(size);
        old.swap(entries_);
        used_ = 0;
        for (Entry &entry : old)
            if (entry.type && entry.is_alive()) add(std::move(entry));
    }
    // Of a class that `find` doesn't find.
    void add(Entry &&entry) {
        size_t i = first_index(entry.type);
        while (entries_[i].type && entries_[i].type != entry.type) i = next(i);
        used_ += !entries_[i].type;
        entries_[i] = std::move(entry);
    }

private:
    static constexpr size_t kSmallest = 64;

    size_t first_index(PyTypeObject *type) const { return (hash_address(type) >> 32) & (entries_.size() - 1); }
    size_t next(size_t i) const { return (i + 1) & (entries_.size() - 1); }
    const Entry *find_address(PyTypeObject *type) const {
        if (entries_.empty()) return nullptr;
        for (size_t i = first_index(type);; i = next(i)) {
            if (entries_[i].type == type) return &entries_[i];
            if (!entries_[i].type) return nullptr;
        }
    }

    std::vector<Entry> entries_;  // open addressing; the size is a power of two
    size_t used_ = 0;
};

}  // namespace pydag
