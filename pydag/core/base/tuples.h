// SPDX-License-Identifier: Apache-2.0
//
// Tuples made and read, dicts made.
#pragma once

#include "base/capi.h"

#include <algorithm>
#include <ranges>

namespace pydag {

// A tuple of these items.
inline nb::object tuple_of(PyObject *const *items, size_t count) {
    nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, incref(items[i]));
    return tuple;
}

template <std::same_as<nb::object>... Items>
nb::object tuple_of(Items... items) {
    nb::object tuple = checked(PyTuple_New(sizeof...(items)));
    Py_ssize_t i = 0;
    (PyTuple_SET_ITEM(tuple.ptr(), i++, items.release().ptr()), ...);
    return tuple;
}

// A dict of these keys and values. Raises what a key's `__hash__` or `__eq__` raises.
inline nb::object dict_of(PyObject *const *keys, PyObject *const *values, size_t count) {
    nb::object dict = checked(PyDict_New());
    for (size_t i = 0; i < count; ++i) checked(PyDict_SetItem(dict.ptr(), keys[i], values[i]));
    return dict;
}

// A tuple of these whole numbers.
template <std::ranges::range Numbers>
nb::object tuple_of_numbers(const Numbers &numbers) {
    nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
    Py_ssize_t i = 0;
    for (const long long number : numbers)
        PyTuple_SET_ITEM(tuple.ptr(), i++, checked(PyLong_FromLongLong(number)).release().ptr());
    return tuple;
}

// An item of a tuple, borrowed; null if the tuple is shorter, or if the item has not been filled in yet. A tuple that
// is made from an iterator is filled item by item, and can be found through the collector meanwhile.
inline PyObject *item_or_null(nb::handle tuple, size_t i) {
    return i < static_cast<size_t>(PyTuple_GET_SIZE(tuple.ptr())) ? PyTuple_GET_ITEM(tuple.ptr(), i) : nullptr;
}
// Whether all items of a tuple have been filled in. Once they are, they stay.
inline bool is_filled(nb::handle tuple) {
    PyObject *const *const items = &PyTuple_GET_ITEM(tuple.ptr(), 0);
    return std::find(items, items + PyTuple_GET_SIZE(tuple.ptr()), nullptr) == items + PyTuple_GET_SIZE(tuple.ptr());
}

}  // namespace pydag
