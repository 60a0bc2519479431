// SPDX-License-Identifier: Apache-2.0
//
// Mappings with the same keys share one Keys object. Runs of exact strings are remembered in a
// small table, found by the first key's address and the number of keys, and confirmed key by key
// by address: the table owns its strings, so an address in it can't belong to another one. Threads that run at the same
// time have tables of their own.
#pragma once

#include "types/keys.h"

#include <concepts>

namespace pydag {

// How many keys of a mapping are sorted: all or none.
inline size_t num_sorted_if(bool sorted, size_t count) { return sorted ? count : 0; }

// Remembered Keys of just these; null if there are none. Borrowed: the next call of `keys_of` may release
// them.
PyObject *find_keys(PyObject *const *keys, size_t count, size_t num_sorted);

// Remembered Keys whose keys, exact strings too, are equal to these; null if there are none.
// Borrowed, as above.
PyObject *find_equal_keys(PyObject *const *strings, size_t count, size_t num_sorted);

// The Keys of a mapping whose keys, in insertion order, are `keys`: those that are remembered, or new
// ones. The first `num_sorted` of them are traversed in ascending order; keys that don't compare are sorted by the name
// of their type first, and where that fails too the insertion order stands. May run the keys' own
// comparisons.
nb::object keys_of(PyObject *const *keys, size_t count, size_t num_sorted);
nb::object keys_of(PyObject *const *keys, size_t count, std::same_as<bool> auto sorted) = delete;

void forget_keys();  // empties the table, that of this thread

}  // namespace pydag
