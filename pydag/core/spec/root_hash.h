// SPDX-License-Identifier: Apache-2.0
//
// What the root of a tree looks like, as a number.
#pragma once

#include "base/same_key.h"

#include <algorithm>

namespace pydag {

// A hash of the classes of the root and, of a tuple, its first items, of the numbers of their items, and of the first
// keys of dicts. The arguments of a call are a tuple in a tuple.
inline uint64_t hash_of_root(PyObject *root) {
    constexpr Py_ssize_t kMostItems = 6;
    constexpr int kMostKeys = 2;
    uint64_t hash = 0;
    const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0xC2B2AE3D27D4EB4Fu; };
    const auto add = [&](PyObject *object) {
        size_t size = 0;
        if (!object) return;
        if (PyTuple_Check(object) || PyList_Check(object)) size = static_cast<size_t>(Py_SIZE(object));
        if (PyDict_Check(object)) {
            size = static_cast<size_t>(PyDict_GET_SIZE(object));
            Py_ssize_t position = 0;
            PyObject *key;
            for (int i = 0; i < kMostKeys && PyDict_Next(object, &position, &key, nullptr); ++i) mix(hash_of_key(key));
        }
        mix(hash_address(Py_TYPE(object)) + size);
    };
    add(root);
    for (int level = 0; level < 2 && root && PyTuple_CheckExact(root); ++level) {
        const Py_ssize_t size = PyTuple_GET_SIZE(root);
        for (Py_ssize_t i = 0; i < std::min(kMostItems, size); ++i) add(PyTuple_GET_ITEM(root, i));
        root = size > 0 ? PyTuple_GET_ITEM(root, 0) : nullptr;
    }
    return hash >> 32;
}

}  // namespace pydag
