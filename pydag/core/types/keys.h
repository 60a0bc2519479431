// SPDX-License-Identifier: Apache-2.0
//
// The keys of one mapping node, or the names of an instance's attributes: the order in which its children are
// traversed, and the order in which it was filled, which is the order in which it is rebuilt.
#pragma once

#include "base/box.h"
#include "base/threads.h"

namespace pydag {

// A dict that is copied. Copying locks it, so where threads run at the same time it belongs to the thread that came
// first, and the others do without.
class DictTemplate {
public:
    bool may_use() {
#ifdef Py_GIL_DISABLED
        static thread_local char own;
        const void *expected = nullptr;
        return owner_.compare_exchange_strong(expected, &own) || expected == &own;
#else
        return true;
#endif
    }
    nb::object dict;  // only where it may be used

private:
#ifdef Py_GIL_DISABLED
    std::atomic<const void *> owner_ = nullptr;  // an address that each thread has for itself
#endif
};

// In memory the keys follow it, and then the two permutations of key_order.h: one allocation for all.
struct Keys {
    static constexpr size_t kItemSize = sizeof(PyObject *) + 2 * sizeof(uint32_t);

    DictTemplate dict_template;                      // a dict with these keys, copied to build one; made at first use
    mutable std::atomic<uint64_t> content_hash = 0;  // 0: not made yet
    uint32_t count = 0;                              // of the keys that are there
    bool in_order = true;                            // traversed as they were inserted: the ranks say nothing
    uint32_t num_sorted = 0;                         // so many of the first ones were sorted, to be traversed
    bool has_only_strings = false;                   // exact ones: comparing them runs no code
    bool has_constant_hashes = false;                // strings, numbers and the like: a dict made of them stays right

    Keys() = default;
    Keys(const Keys &) = delete;
    Keys &operator=(const Keys &) = delete;
    ~Keys() {
        while (count > 0) decref(inserted()[--count]);
    }
    // Doesn't visit the template: whoever found it through the collector could change every dict that is built
    // from it. It holds only constants, so it is part of no cycle.
    int traverse(visitproc visit, void *arg) const {
        for (uint32_t i = 0; i < count; ++i) Py_VISIT(inserted()[i]);
        return 0;
    }

    uint32_t size() const { return count; }
    // Whether the order of traversal was made by sorting, not taken from the mapping.
    bool is_sorted() const { return num_sorted == count; }
    // The keys as they were inserted.
    PyObject **inserted() { return reinterpret_cast<PyObject **>(this + 1); }
    PyObject *const *inserted() const { return reinterpret_cast<PyObject *const *>(this + 1); }
    PyObject *inserted_key(uint32_t i) const { return inserted()[i]; }
    // The index of each key in traversal order, and behind those the reverse permutation: see key_order.h.
    uint32_t *rank_memory() { return reinterpret_cast<uint32_t *>(inserted() + count); }
    // ranks()[i] is the index of inserted()[i] in traversal order; null if the two orders are the same.
    const uint32_t *ranks() const { return in_order ? nullptr : const_cast<Keys *>(this)->rank_memory(); }
    uint32_t rank(uint32_t i) const { return in_order ? i : ranks()[i]; }
    // The i-th key in traversal order.
    PyObject *key(uint32_t i) const { return inserted()[in_order ? i : ranks()[count + i]]; }

    // A tuple of the keys as they were inserted; in traversal order.
    nb::object tuple() const;
    nb::object order() const;
    // The hash of the keys in traversal order; the same in every process. Strings count by their text. Of other keys
    // only the number counts, since equal keys may be of different types. No key is asked for its hash.
    uint64_t hash() const;
    // About how many bytes the keys take, if all are small constants: then they may be kept after the
    // user has dropped them. Else 0.
    size_t num_bytes() const;
};
using KeysBox = Box<Keys>;

// Whether a key is a constant: no code of its class says what its hash is, and how it compares with others of such
// keys.
bool has_constant_hash(PyObject *key);

// The Keys of a mapping that was filled in this order, and is traversed in it.
nb::object new_keys(PyObject *const *keys, size_t count);
// The same, with the first `num_sorted` keys traversed in ascending order: see key_order.h. May run the keys' own
// comparisons.
nb::object new_sorted_keys(PyObject *const *keys, size_t count, size_t num_sorted);

// The same keys for another purpose: whether both have equal keys in the same traversal order
// (compared by identity, then `==`).
bool equal_keys(nb::handle a, nb::handle b);

// For equal keys: whether they were inserted in the same order. Then the same permutation leads from that
// order to the order of traversal.
bool have_same_order(const Keys &a, const Keys &b);

}  // namespace pydag
