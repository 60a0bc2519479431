// SPDX-License-Identifier: Apache-2.0
//
// What the root of a tree looks like, as a number.
#pragma once

#include "base/identity_table.h"
#include "base/same_key.h"

#include <algorithm>

namespace pydag {

// A hash of a few objects: of their classes, the numbers of their items, and the first keys of dicts.
class RootHash {
public:
    void add(PyObject *object) {
        size_t size = 0;
        if (!object) return;
        if (PyTuple_Check(object) || PyList_Check(object)) size = static_cast<size_t>(Py_SIZE(object));
        if (PyDict_Check(object)) {
            size = static_cast<size_t>(PyDict_GET_SIZE(object));
            add_keys(object);
        }
        mix(hash_address(Py_TYPE(object)) + size);
    }
    // The first items of a tuple; returns the very first, or null.
    PyObject *add_items(PyObject *object) {
        constexpr Py_ssize_t kMost = 6;
        if (!object || !PyTuple_CheckExact(object)) return nullptr;
        for (Py_ssize_t i = 0; i < std::min(kMost, PyTuple_GET_SIZE(object)); ++i) add(PyTuple_GET_ITEM(object, i));
        return PyTuple_GET_SIZE(object) > 0 ? PyTuple_GET_ITEM(object, 0) : nullptr;
    }
    uint64_t value() const { return hash_ >> 32; }

private:
    void mix(uint64_t value) { hash_ = (hash_ ^ value) * 0xC2B2AE3D27D4EB4Fu; }
    void add_keys(PyObject *dict) {
        constexpr int kMost = 2;
        Py_ssize_t position = 0;
        PyObject *key;
        for (int i = 0; i < kMost && PyDict_Next(dict, &position, &key, nullptr); ++i) mix(hash_of_key(key));
    }

    uint64_t hash_ = 0;
};

}  // namespace pydag
