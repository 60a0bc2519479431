// SPDX-License-Identifier: Apache-2.0
#include "types/key_order.h"

#include "base/identity_table.h"
#include "base/tuples.h"
#include "types/key_numbers.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace pydag {
namespace {

// Sorts keys that can be numbered; false for others, and where two of them don't compare. Runs no Python code.
bool sort_numbered(PyObject *const *keys, uint32_t count, uint32_t *order) {
    NumberedKeys numbered;
    if (!number_keys(keys, count, numbered)) return false;
    const auto comes_first = [=](const NumberedKey &a, const NumberedKey &b) {
        return a.number != b.number ? a.number < b.number : a.index != b.index && is_less(keys[a.index], keys[b.index]);
    };
    NumberedKey *const first = numbered.data();
    try {
        std::sort(first, first + count, comes_first);
    } catch (const IncomparableError &) {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i) order[i] = first[i].index;
    return true;
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

bool ascending_order(PyObject *const *keys, uint32_t count, uint32_t *ranks) {
    if (count <= 1) return false;
    uint32_t *const order = ranks + count;
    std::iota(order, order + count, 0u);
    if (!sort_numbered(keys, count, order)) sort_any(keys, count, order);
    if (std::is_sorted(order, order + count)) return false;
    for (uint32_t i = 0; i < count; ++i) ranks[order[i]] = i;
    return true;
}

}  // namespace pydag
