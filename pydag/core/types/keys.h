// SPDX-License-Identifier: Apache-2.0
//
// The keys of one mapping node, or the names of an instance's attributes: the order in which its children are
// traversed, and the order in which it was filled, which is the order in which it is rebuilt.
#pragma once

#include "base/box.h"
#include "base/threads.h"

#include <string>
#include <vector>

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

// In memory the keys follow the struct, and then the two permutations of `ascending_order`: one allocation for all.
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
    // The index of each key in traversal order, and behind those the reverse permutation: see `ascending_order`.
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

// Whether a key is a constant: no Python code runs when it is hashed, or compared with other constants.
bool has_constant_hash(PyObject *key);

// The Keys of a mapping that was filled in this order, and is traversed in it.
nb::object new_keys(PyObject *const *keys, size_t count);
// The same, with the first `num_sorted` keys traversed in ascending order, as `ascending_order` finds it. May run
// the keys' own comparisons.
nb::object new_sorted_keys(PyObject *const *keys, size_t count, size_t num_sorted);

// Whether both have equal keys in the same traversal order (compared by identity, then `==`).
bool equal_keys(nb::handle a, nb::handle b);

// For equal keys: whether they were inserted in the same order. Then the same permutation leads from that
// order to the order of traversal.
bool have_same_order(const Keys &a, const Keys &b);

// Whether both have the same keys, in any order. Then `order[i]` is the index of expected.key(i) in `actual`, or
// `order` is empty if all indices are the same. Keys are found as a dict finds them.
bool match_keys(nb::handle expected, nb::handle actual, std::vector<uint32_t> &order);
// In words: the keys of two nodes that don't match, and which are missing and surplus. Expected keys stand in the order
// of traversal, all others are sorted.
std::string key_mismatch(const Keys &expected, const Keys &actual);

// Sorts the keys of a mapping. Writes two permutations to `ranks`: for each key its index in ascending order; behind
// those, for each index in ascending order, the index of its key now. False if the keys ascend already; then what is in
// `ranks` is of no use. Keys that don't compare are sorted by the name of their type first; if that fails too, they
// keep their order. Runs the keys' own comparisons: that is no Python code if their hashes are constant. The caller
// owns the keys where it may be.
bool ascending_order(PyObject *const *keys, uint32_t count, uint32_t *ranks);

}  // namespace pydag
