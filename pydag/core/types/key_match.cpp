// SPDX-License-Identifier: Apache-2.0
#include "types/key_match.h"

#include "base/buffer.h"
#include "base/error.h"
#include "types/key_table.h"

#include <algorithm>

namespace pydag {
namespace {

std::string brief_list(const Keys &keys) { return text_of(short_repr(checked(PySequence_List(keys.order().ptr())))); }

nb::object sorted_keys(const Keys &keys) { return keys_of(keys.inserted(), keys.size(), keys.size()); }

// The keys of `keys` that `others` doesn't have, sorted.
nb::object without(const Keys &keys, const Keys &others) {
    const nb::object known = checked(PySet_New(others.tuple().ptr()));
    RefBuffer<16> missing;
    for (uint32_t i = 0; i < keys.size(); ++i)
        if (!checked(PySet_Contains(known.ptr(), keys.key(i)))) missing.push_borrowed(keys.key(i));
    return keys_of(missing.data(), missing.size(), missing.size());
}

}  // namespace

bool match_keys(nb::handle expected_box, nb::handle actual_box, std::vector<uint32_t> &order) {
    const Keys &expected = KeysBox::of(expected_box), &actual = KeysBox::of(actual_box);
    const uint32_t count = expected.size();
    order.clear();
    if (count != actual.size()) return false;
    if (equal_keys(expected_box, actual_box)) return true;
    const nb::object found = checked(PyDict_New());
    for (uint32_t i = 0; i < count; ++i)
        checked(PyDict_SetItem(found.ptr(), actual.key(i), checked(PyLong_FromSize_t(i)).ptr()));
    std::vector<bool> taken(count);
    std::vector<uint32_t> result(count);
    for (uint32_t i = 0; i < count; ++i) {
        PyObject *const index = PyDict_GetItemWithError(found.ptr(), expected.key(i));
        if (!index && PyErr_Occurred()) nb::raise_python_error();
        // The code of a key can find the dict through the collector, and put anything into it.
        const size_t at = index && PyLong_CheckExact(index) ? PyLong_AsSize_t(index) : count;
        PyErr_Clear();
        // A key whose `__eq__` gives different answers could be found at two indices.
        if (at >= count || taken[at]) return false;
        result[i] = static_cast<uint32_t>(at);
        taken[at] = true;
    }
    order = std::move(result);
    return true;
}

std::string key_mismatch(const Keys &expected, const Keys &actual) {
    const nb::object sorted = sorted_keys(actual), missing = without(expected, actual),
                     extra = without(actual, expected);
    std::string text = "expected key(s): " + brief_list(expected) + ", got key(s): " + brief_list(KeysBox::of(sorted));
    if (KeysBox::of(missing).size() > 0) text += ", missing key(s): " + brief_list(KeysBox::of(missing));
    if (KeysBox::of(extra).size() > 0) text += ", extra key(s): " + brief_list(KeysBox::of(extra));
    return text;
}

}  // namespace pydag
