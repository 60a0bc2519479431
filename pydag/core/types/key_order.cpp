// SPDX-License-Identifier: Apache-2.0
#include "types/key_order.h"

#include "base/identity_table.h"
#include "base/tuples.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace pydag {
namespace {

bool is_less(PyObject *a, PyObject *b) {
    // The first characters mostly tell.
    if (PyUnicode_GET_LENGTH(a) > 0 && PyUnicode_GET_LENGTH(b) > 0) {
        const Py_UCS4 first = PyUnicode_READ_CHAR(a, 0), other = PyUnicode_READ_CHAR(b, 0);
        if (first != other) return first < other;
    }
    return PyUnicode_Compare(a, b) < 0;
}

// The order of exact strings; runs no Python code.
void sort_strings(PyObject *const *keys, uint32_t count, uint32_t *order) {
    constexpr uint32_t kFew = 12;
    if (count > kFew) {
        std::sort(order, order + count, [=](uint32_t a, uint32_t b) { return is_less(keys[a], keys[b]); });
        return;
    }
    for (uint32_t i = 1; i < count; ++i) {
        uint32_t index = i;
        for (; index > 0 && is_less(keys[i], keys[order[index - 1]]); --index) order[index] = order[index - 1];
        order[index] = i;
    }
}

// A list of the keys sorted by themselves, or by (name of the type, key) where they don't compare;
// null where that fails too. Sorts a copy, so a comparison that fails midway leaves no trace.
nb::object sort_objects(nb::handle keys) {
    nb::object list = checked(PySequence_List(keys.ptr()));
    if (PyList_Sort(list.ptr()) == 0) return list;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) nb::raise_python_error();
    PyErr_Clear();

    nb::object pairs = checked(PyList_New(0));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.ptr()); ++i) {
        PyObject *const key = PyTuple_GET_ITEM(keys.ptr(), i);
        const nb::object type = class_of(key);
        const nb::object name =
            checked(PyUnicode_FromFormat("%S.%S", type.attr("__module__").ptr(), type.attr("__qualname__").ptr()));
        checked(PyList_Append(pairs.ptr(), checked(PyTuple_Pack(2, name.ptr(), key)).ptr()));
    }
    if (PyList_Sort(pairs.ptr()) == 0) {
        nb::object sorted = checked(PyList_New(0));
        // The code of a comparison may have found the list through the collector, and put anything into it.
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.ptr()); ++i) {
            PyObject *const pair = PyList_GET_ITEM(pairs.ptr(), i);
            PyObject *const key = pair && PyTuple_CheckExact(pair) ? item_or_null(pair, 1) : nullptr;
            if (!key) return nb::object();
            checked(PyList_Append(sorted.ptr(), key));
        }
        return sorted;
    }
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) nb::raise_python_error();
    PyErr_Clear();
    return nb::object();
}

void sort_any(PyObject *const *keys, uint32_t count, uint32_t *order) {
    const nb::object sorted = sort_objects(tuple_of(keys, count));
    if (!sorted.is_valid() || PyList_GET_SIZE(sorted.ptr()) != static_cast<Py_ssize_t>(count)) return;
    IdentityTable indices;
    for (uint32_t i = 0; i < count; ++i) indices.find_or_add(keys[i], i);
    // One object may be a key twice, if its hash has changed; and whoever found the list while it was being
    // sorted may have changed it. Then the keys keep the order of insertion.
    std::vector<bool> taken(count);
    std::vector<uint32_t> result(count);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t index = indices.find(PyList_GET_ITEM(sorted.ptr(), static_cast<Py_ssize_t>(i)));
        if (index == IdentityTable::kNew || taken[index]) return;
        taken[index] = true;
        result[i] = index;
    }
    std::copy(result.begin(), result.end(), order);
}

}  // namespace

bool ascending_order(PyObject *const *keys, uint32_t count, bool are_strings, uint32_t *ranks) {
    if (count <= 1) return false;
    uint32_t *const order = ranks + count;
    std::iota(order, order + count, 0u);
    if (are_strings) sort_strings(keys, count, order);
    else sort_any(keys, count, order);
    if (std::is_sorted(order, order + count)) return false;
    for (uint32_t i = 0; i < count; ++i) ranks[order[i]] = i;
    return true;
}

}  // namespace pydag
