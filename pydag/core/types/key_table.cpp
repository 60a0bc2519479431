// SPDX-License-Identifier: Apache-2.0
#include "types/key_table.h"

#include "base/threads.h"

#include <algorithm>

namespace pydag {
namespace {

// Longer and larger runs are not remembered, so that what the table holds is bounded.
constexpr size_t kLongestRun = 256, kLargestRun = size_t{48} << 10;
constexpr size_t kTableSize = 512;

struct KeyTables {
    PyObject *remembered[2][kTableSize];  // [any sorted], owned
    // At each index the last key of the run that was looked up last. The Keys of a run are remembered instead of
    // others only when the run comes for the second time in succession, since most runs come only once. Not owned, only
    // compared.
    PyObject *came_once[2][kTableSize];
    PyObject *by_content[2][kTableSize];  // [any sorted], owned: for strings that are equal to those remembered
    PyObject *none_at_all;                // owned: the Keys of an empty mapping
#ifdef Py_GIL_DISABLED
    ~KeyTables();
#endif
};
KeyTables &own() { return OwnOfThread<KeyTables>::get(); }

size_t content_index(PyObject *const *strings, size_t count) {
    auto hash = static_cast<uint64_t>(count);
    for (size_t i = 0; i < count; ++i)
        hash = (hash ^ static_cast<uint64_t>(PyObject_Hash(strings[i]))) * 0x9E3779B97F4A7C15u;
    return (hash >> 32) % kTableSize;
}

void replace(PyObject *&slot, nb::object box) {
    const nb::object evicted = nb::steal(slot);
    slot = box.release().ptr();
}

// Runs of one length that begin with the same key, as records do, have indices of their own.
size_t index_of(PyObject *const *keys, size_t count) {
    const uint64_t hash = hash_address(keys[0]) + 3 * hash_address(keys[count / 2]) + 5 * hash_address(keys[count - 1]);
    return ((hash >> 32) + count * 31) % kTableSize;
}

// Remembers new Keys, unless others are remembered at the same index and these come for the first time.
void remember(nb::handle box) {
    const Keys &keys = KeysBox::of(box);
    const bool sorted = keys.num_sorted > 0;
    if (!keys.has_only_strings || keys.size() > kLongestRun) return;
    const size_t i = index_of(keys.inserted(), keys.size());
    KeyTables &tables = own();
    PyObject *const last = keys.inserted_key(keys.size() - 1);
    const bool came = std::exchange(tables.came_once[sorted][i], last) == last;
    if (!came && tables.remembered[sorted][i]) return;
    const size_t num_bytes = keys.num_bytes();
    if (num_bytes == 0 || num_bytes > kLargestRun) return;
    replace(tables.remembered[sorted][i], nb::borrow(box));
    replace(tables.by_content[sorted][content_index(keys.inserted(), keys.size())], nb::borrow(box));
}

#ifdef Py_GIL_DISABLED
KeyTables::~KeyTables() {
    for (auto *tables : {remembered, by_content})
        for (int sorted : {0, 1})
            for (PyObject *&slot : tables[sorted]) replace(slot, nb::object());
    replace(none_at_all, nb::object());
}
#endif

}  // namespace

PyObject *find_keys(PyObject *const *keys, size_t count, size_t num_sorted) {
    if (count == 0) return nullptr;
    PyObject *const box = own().remembered[num_sorted > 0][index_of(keys, count)];
    const bool fits = box && KeysBox::of(box).size() == count && KeysBox::of(box).num_sorted == num_sorted &&
                      std::equal(keys, keys + count, KeysBox::of(box).inserted());
    return fits ? box : nullptr;
}

PyObject *find_equal_keys(PyObject *const *strings, size_t count, size_t num_sorted) {
    PyObject *const box = own().by_content[num_sorted > 0][content_index(strings, count)];
    if (!box || KeysBox::of(box).size() != count || KeysBox::of(box).num_sorted != num_sorted) return nullptr;
    for (uint32_t i = 0; i < count; ++i) {
        PyObject *const key = KeysBox::of(box).inserted_key(i);
        if (key != strings[i] && PyUnicode_Compare(key, strings[i]) != 0) return nullptr;
    }
    return box;
}

nb::object keys_of(PyObject *const *keys, size_t count, size_t num_sorted) {
    PyObject *&known = own().none_at_all;
    if (count == 0 && known) return nb::borrow(known);
    if (PyObject *const found = find_keys(keys, count, num_sorted)) return nb::borrow(found);
    nb::object box = num_sorted > 0 ? new_sorted_keys(keys, count, num_sorted) : new_keys(keys, count);
    if (count > 0) remember(box);
    else known = incref(box.ptr());
    return box;
}

void forget_keys() {
    for (auto *tables : {own().remembered, own().by_content})
        for (int sorted : {0, 1})
            for (PyObject *&slot : tables[sorted]) replace(slot, nb::object());
}

}  // namespace pydag
