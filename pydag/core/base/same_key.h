// SPDX-License-Identifier: Apache-2.0
//
// Equality of keys for a walk along a known structure. Trees that are made anew, or read from a file, have new strings
// of the same texts.
#pragma once

#include "base/capi.h"

namespace pydag {

// Whether two keys are surely the same: one object, or exact strings of one text, whose hashes their dicts have asked
// for. Runs no Python code.
inline bool is_same_key(PyObject *key, PyObject *other) {
    if (key == other) [[likely]]
        return true;
    if (!is_exact_str(key) || !is_exact_str(other)) return false;
    const auto hash_of = [](PyObject *text) { return reinterpret_cast<PyASCIIObject *>(text)->hash; };
    return hash_of(key) == hash_of(other) && PyUnicode_Compare(key, other) == 0;
}
// A hash under which such keys are the same.
inline uint64_t hash_of_key(PyObject *key) {
    return is_exact_str(key) ? static_cast<uint64_t>(reinterpret_cast<PyASCIIObject *>(key)->hash) : hash_address(key);
}

}  // namespace pydag
