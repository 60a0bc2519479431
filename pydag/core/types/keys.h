// SPDX-License-Identifier: Apache-2.0
//
// The keys of one mapping node: the order in which its children are traversed, and the order in
// which it was filled, which is the order in which it is rebuilt.
#pragma once

#include "base/box.h"
#include "types/permutation.h"

namespace pydag {

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

// The same keys for another purpose: whether both have equal keys in the same traversal order
// (compared by identity, then `==`).
bool equal_keys(nb::handle a, nb::handle b);

// Of equal keys, whether they were put in in the same order: the way from that to the order of traversal
// is the same.
bool have_same_order(const Keys &a, const Keys &b);

// Whether the tuples hold the same items, by identity, then `==`.
bool equal_tuples(nb::handle a, nb::handle b);

}  // namespace pydag
