// SPDX-License-Identifier: Apache-2.0
#include "types/key_table.h"

#include "base/constant_size.h"
#include "base/tuples.h"

#include <algorithm>

namespace pydag {
namespace {

// Longer and larger runs are not remembered, so that what the table holds is bounded.
constexpr size_t kLongestRun = 256, kLargestRun = size_t{48} << 10;
constexpr size_t kTableSize = 512;
PyObject *remembered[2][kTableSize];  // [sorted], owned
// The first keys of the runs that came last: one that comes for the first time is not worth the place
// of another one. Not owned, only compared.
PyObject *came_once[2][kTableSize];
PyObject *by_content[2][kTableSize];  // [sorted], owned: for strings that are equal to those remembered

size_t content_place(PyObject *const *strings, size_t count) {
    auto hash = static_cast<uint64_t>(count);
    for (size_t i = 0; i < count; ++i)
        hash = (hash ^ static_cast<uint64_t>(PyObject_Hash(strings[i]))) * 0x9E3779B97F4A7C15u;
    return (hash >> 32) % kTableSize;
}

void replace(PyObject *&slot, nb::object box) {
    const nb::object evicted = nb::steal(slot);
    slot = box.release().ptr();
}

size_t place(PyObject *first, size_t count) { return ((hash_address(first) >> 32) + count * 31) % kTableSize; }

// Whether no code of the key's class says what its hash is.
bool has_constant_hash(PyObject *key) {
    return is_exact_str(key) || PyLong_CheckExact(key) || PyFloat_CheckExact(key) || PyComplex_CheckExact(key) ||
           PyBytes_CheckExact(key) || PyBool_Check(key) || key == Py_None;
}

// As `Keys::num_bytes`.
size_t size_of_constants(PyObject *const *keys, size_t count) {
    constexpr size_t kPlaces = 64;  // of each key in the tuple, the permutation and the template
    size_t total = 64;
    for (size_t i = 0; i < count; ++i) {
        const size_t size = small_constant_size(keys[i]);
        if (size == 0) return 0;
        total += size + kPlaces;
    }
    return total;
}

}  // namespace

PyObject *guess_keys(PyObject *first, size_t count, bool sorted) {
    PyObject *const keys = remembered[sorted][place(first, count)];
    return keys && KeysBox::of(keys).size() == count ? keys : nullptr;
}

PyObject *find_equal_keys(PyObject *const *strings, size_t count, bool sorted) {
    PyObject *const box = by_content[sorted][content_place(strings, count)];
    if (!box || KeysBox::of(box).size() != count) return nullptr;
    for (uint32_t i = 0; i < count; ++i) {
        PyObject *const key = KeysBox::of(box).inserted_key(i);
        if (key != strings[i] && PyUnicode_Compare(key, strings[i]) != 0) return nullptr;
    }
    return box;
}

nb::object keys_of(PyObject *const *keys, size_t count, bool sorted) {
    static PyObject *none_at_all[2];
    PyObject *&known = none_at_all[sorted];
    if (count == 0 && known) return nb::borrow(known);
    if (PyObject *const guess = count > 0 ? guess_keys(keys[0], count, sorted) : nullptr)
        if (std::equal(keys, keys + count, &PyTuple_GET_ITEM(KeysBox::of(guess).inserted.ptr(), 0)))
            return nb::borrow(guess);
    nb::object inserted = tuple_of(keys, count);
    const bool all_strings = std::all_of(keys, keys + count, is_exact_str);
    Permutation places = sorted ? ascending_order(inserted, all_strings) : Permutation();
    nb::object box =
        KeysBox::make(std::move(inserted), nb::object(), std::move(places), static_cast<uint32_t>(count), sorted,
                      all_strings, all_strings || std::all_of(keys, keys + count, has_constant_hash));
    Keys &made = KeysBox::of(box);
    made.num_bytes = size_of_constants(keys, count);
    if (all_strings && count > 0 && count <= kLongestRun && made.num_bytes > 0 && made.num_bytes <= kLargestRun) {
        const size_t i = place(keys[0], count);
        const bool came = std::exchange(came_once[sorted][i], keys[0]) == keys[0];
        if (came || !remembered[sorted][i]) {
            replace(remembered[sorted][i], box);
            replace(by_content[sorted][content_place(keys, count)], box);
        }
    }
    if (count == 0) known = incref(box.ptr());
    return box;
}

void forget_keys() {
    for (auto *tables : {remembered, by_content})
        for (int sorted : {0, 1})
            for (PyObject *&slot : tables[sorted]) replace(slot, nb::object());
}

}  // namespace pydag
