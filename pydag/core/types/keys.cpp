// SPDX-License-Identifier: Apache-2.0
#include "types/keys.h"

#include "base/buffer.h"
#include "base/constant_size.h"
#include "base/equality.h"
#include "base/error.h"
#include "base/text_hash.h"
#include "base/tuples.h"
#include "types/key_table.h"

#include <algorithm>
#include <numeric>

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

bool has_constant_hash(PyObject *key) {
    if (!PyTuple_CheckExact(key)) return is_constant(key);
    PyObject *const *const items = &PyTuple_GET_ITEM(key, 0);
    return std::all_of(items, items + PyTuple_GET_SIZE(key), [](PyObject *item) { return item && is_constant(item); });
}

uint64_t Keys::hash() const {
    if (const uint64_t known = content_hash.load(std::memory_order_relaxed)) return known;
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; ++i) hash = mix_if_text(hash, key(i));
    content_hash.store(hash | 1, std::memory_order_relaxed);
    return hash | 1;
}

nb::object Keys::tuple() const { return tuple_of(inserted(), count); }

nb::object Keys::order() const {
    nb::object tuple = checked(PyTuple_New(count));
    for (uint32_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, incref(key(i)));
    return tuple;
}

size_t Keys::num_bytes() const {
    size_t total = sizeof(Keys);
    for (uint32_t i = 0; i < count; ++i) {
        const size_t size = constant_size(inserted_key(i));
        if (size == 0) return 0;
        constexpr size_t kInTemplate = 40;
        total += size + kItemSize + kInTemplate;
    }
    return total;
}

nb::object new_keys(PyObject *const *keys, size_t count) {
    nb::object box = KeysBox::make_with_items(count);
    Keys &made = KeysBox::of(box);
    for (size_t i = 0; i < count; ++i) made.inserted()[i] = incref(keys[i]);
    made.count = static_cast<uint32_t>(count);
    made.has_only_strings = std::all_of(keys, keys + count, is_exact_str);
    made.has_constant_hashes = made.has_only_strings || std::all_of(keys, keys + count, has_constant_hash);
    if (!made.has_constant_hashes) KeysBox::track(box);
    return box;
}

nb::object new_sorted_keys(PyObject *const *keys, size_t count, size_t num_sorted) {
    nb::object box = new_keys(keys, count);
    Keys &made = KeysBox::of(box);
    made.num_sorted = static_cast<uint32_t>(num_sorted);
    uint32_t *const ranks = made.rank_memory();
    made.in_order = !ascending_order(made.inserted(), made.num_sorted, ranks);
    if (made.in_order || num_sorted == count) return box;
    // The keys that were not sorted follow behind the others, in both permutations.
    std::copy_backward(ranks + num_sorted, ranks + 2 * num_sorted, ranks + count + num_sorted);
    std::iota(ranks + num_sorted, ranks + count, made.num_sorted);
    std::iota(ranks + count + num_sorted, ranks + 2 * count, made.num_sorted);
    return box;
}

bool equal_keys(nb::handle a, nb::handle b) {
    if (a.is(b)) return true;
    const Keys &x = KeysBox::of(a), &y = KeysBox::of(b);
    if (x.size() != y.size()) return false;
    for (uint32_t i = 0; i < x.size(); ++i)
        if (!are_equal_objects(x.key(i), y.key(i))) return false;
    return true;
}

bool have_same_order(const Keys &a, const Keys &b) {
    if (a.size() != b.size()) return false;
    for (uint32_t i = 0; i < a.size(); ++i)
        if (a.rank(i) != b.rank(i)) return false;
    return true;
}

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
