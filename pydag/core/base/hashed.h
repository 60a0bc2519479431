// SPDX-License-Identifier: Apache-2.0
//
// An object as a key whose hash is computed once, when the key is made.
//
// JAX hashes the static arguments at each call. Without this class an argument that consists of nested
// tuples would be hashed item by item each time.
#pragma once

#include "base/box.h"

namespace pydag {

struct Hashed {
    nb::object value;
    Py_hash_t hash;
    auto python_refs() { return std::tie(value); }
};
static_assert(sizeof(Hashed) == sizeof(nb::object) + sizeof(Py_hash_t), "list the new member in python_refs()");
using HashedBox = Box<Hashed>;

// Raises what the value's own `__hash__` raises.
nb::object make_hashed(nb::handle value);
void make_hashed_type();

}  // namespace pydag
