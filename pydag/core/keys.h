// SPDX-License-Identifier: Apache-2.0
//
// The keys of one mapping node: the order in which its children are traversed, and the order in
// which it was filled, which is the order in which it is rebuilt.
//
// Mappings with the same keys share one Keys object. Runs of exact strings are remembered in a
// small table, found by the first key's address and the number of keys, and confirmed key by key
// by address: the table owns its strings, so an address in it can't belong to another one.
#pragma once

#include "box.h"
#include "buffer.h"

#include <memory>

namespace pydag {

struct Keys {
    nb::object inserted;       // tuple: the keys as they were inserted
    nb::object dict_template;  // a dict with these keys, copied to build one; made at first use
    // ranks[i] is the place of inserted[i] in traversal order, ranks[count + i] the other way
    // round; empty where the two orders are one.
    std::unique_ptr<uint32_t[]> ranks;
    uint32_t count = 0;
    bool is_sorted = false;         // the order was made by sorting, not taken from the mapping
    bool has_only_strings = false;  // exact ones: comparing them runs no code
    auto python_refs() { return std::tie(inserted, dict_template); }

    uint32_t size() const { return count; }
    bool in_order() const { return !ranks; }
    uint32_t rank(uint32_t i) const { return ranks ? ranks[i] : i; }
    PyObject *inserted_key(uint32_t i) const { return PyTuple_GET_ITEM(inserted.ptr(), i); }
    // The i-th key in traversal order.
    PyObject *key(uint32_t i) const { return inserted_key(ranks ? ranks[count + i] : i); }
    // A tuple of the keys in traversal order.
    nb::object order() const;
};
static_assert(sizeof(Keys) == 2 * sizeof(nb::object) + 2 * sizeof(void *), "list the new member in python_refs()");
using KeysBox = Box<Keys>;

// A remembered Keys object whose first key and number of keys are these, to be confirmed by the
// caller; null if there is none. Borrowed: the next call of `keys_of` may release it.
PyObject *guess_keys(PyObject *first, size_t count, bool sorted);

// The Keys of a mapping whose keys, in insertion order, are `keys`. `sorted`: traverse them in
// ascending order; keys that don't compare are sorted by the name of their type first, and where
// that fails too the insertion order stands. May run the keys' own comparisons.
nb::object keys_of(PyObject *const *keys, size_t count, bool sorted);

// The same keys for another purpose: whether both have equal keys in the same traversal order
// (compared by identity, then `==`).
bool equal_keys(nb::handle a, nb::handle b);

// Whether the tuples hold the same items, by identity, then `==`.
bool equal_tuples(nb::handle a, nb::handle b);

void forget_keys();  // empties the table

}  // namespace pydag
