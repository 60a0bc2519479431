// SPDX-License-Identifier: Apache-2.0
//
// An object as a key whose hash is computed once, when the key is made. It is equal to itself alone: JAX compares keys
// while it looks into tables of its own, and crashes if code of Python's runs then.
//
// JAX hashes the static arguments at each call. Without this class an argument that consists of nested
// tuples would be hashed item by item each time.
#pragma once

#include "base/box.h"

#include <atomic>

namespace pydag {

struct Hashed {
    nb::object value;
    Py_hash_t hash;
    std::atomic<size_t> num_calls = 0;  // of a compiled function, for this key
    auto python_refs() { return std::tie(value); }
};
static_assert(sizeof(Hashed) == sizeof(nb::object) + sizeof(Py_hash_t) + sizeof(size_t),
              "list the new member in python_refs()");
using HashedBox = Box<Hashed>;

// Raises what the value's own `__hash__` raises.
nb::object make_hashed(nb::handle value);
// Counts a call, if the key is a Hashed.
inline void note_call(PyObject *key) {
    if (HashedBox::check(key)) HashedBox::of(key).num_calls.fetch_add(1, std::memory_order_relaxed);
}
void make_hashed_type();

}  // namespace pydag
