// SPDX-License-Identifier: Apache-2.0
//
// The keys of one mapping node: the order in which its children are traversed, and the order in
// which it was filled, which is the order in which it is rebuilt.
//
// Mappings with the same keys share one Keys object. Runs of exact strings are remembered in a
// small table, found by the first key's address and the number of keys, and confirmed key by key
// by address: the table owns its strings, so an address in it can't belong to another one.
#pragma once

#include "base/box.h"
#include "base/buffer.h"

#include <memory>

namespace pydag {

// The place of each key in traversal order, then the other way round. A few need no memory of
// their own.
class Permutation {
public:
    uint32_t *allocate(size_t count) {
        if (2 * count > kInline) heap_ = std::make_unique_for_overwrite<uint32_t[]>(2 * count);
        is_set_ = true;
        return data();
    }
    uint32_t *data() { return heap_ ? heap_.get() : is_set_ ? inline_ : nullptr; }
    const uint32_t *data() const { return const_cast<Permutation *>(this)->data(); }

private:
    static constexpr size_t kInline = 8;
    uint32_t inline_[kInline];
    bool is_set_ = false;
    std::unique_ptr<uint32_t[]> heap_;
};

struct Keys {
    nb::object inserted;       // tuple: the keys as they were inserted
    nb::object dict_template;  // a dict with these keys, copied to build one; made at first use
    Permutation places;        // not set where the two orders are one
    uint32_t count = 0;
    bool is_sorted = false;            // the order was made by sorting, not taken from the mapping
    bool has_only_strings = false;     // exact ones: comparing them runs no code
    bool has_constant_hashes = false;  // strings, numbers and the like: a dict made of them stays right
    // About how many bytes the keys take, if all are small constants: then they may be kept after the
    // user has dropped them. Else 0.
    size_t num_bytes = 0;
    mutable uint64_t content_hash = 0;  // 0: not made yet

    // Without the template: who found it through the collector could change every dict to come. It
    // holds constants alone, so it is part of no cycle.
    auto python_refs() { return std::tie(inserted); }

    uint32_t size() const { return count; }
    // Of the keys in traversal order; the same in every process. Strings count by what they say, other keys
    // only as being there: who knows what they are equal to. No key is asked for its hash.
    uint64_t hash() const;
    // ranks()[i] is the place of inserted[i] in traversal order; null where the two orders are one.
    const uint32_t *ranks() const { return places.data(); }
    bool in_order() const { return !ranks(); }
    uint32_t rank(uint32_t i) const { return ranks() ? ranks()[i] : i; }
    PyObject *inserted_key(uint32_t i) const { return PyTuple_GET_ITEM(inserted.ptr(), i); }
    // The i-th key in traversal order.
    PyObject *key(uint32_t i) const { return inserted_key(ranks() ? ranks()[count + i] : i); }
    // A tuple of the keys in traversal order.
    nb::object order() const;
};
static_assert(sizeof(Keys) == 2 * sizeof(nb::object) + sizeof(Permutation) + 24,
              "list the new member in python_refs()");
using KeysBox = Box<Keys>;

// A remembered Keys object whose first key and number of keys are these, to be confirmed by the
// caller; null if there is none. Borrowed: the next call of `keys_of` may release it.
PyObject *guess_keys(PyObject *first, size_t count, bool sorted);

// CachedStructure Keys whose keys, exact strings too, are equal to these; null if there are none.
// Borrowed, as above.
PyObject *find_equal_keys(PyObject *const *strings, size_t count, bool sorted);

// The Keys of a mapping whose keys, in insertion order, are `keys`: those that are remembered, or
// new ones. `sorted`: traverse them in
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
