// SPDX-License-Identifier: Apache-2.0
#include "types/keys.h"

#include "base/constant_size.h"
#include "base/identity_table.h"
#include "base/tuples.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

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

using Order = Buffer<uint32_t, 32>;

void start(Order &order, size_t count) {
    uint32_t *const places = order.extend(count);
    std::iota(places, places + count, 0u);
}

bool is_less(PyObject *a, PyObject *b) {
    // The first characters mostly tell.
    if (PyUnicode_GET_LENGTH(a) > 0 && PyUnicode_GET_LENGTH(b) > 0) {
        const Py_UCS4 first = PyUnicode_READ_CHAR(a, 0), other = PyUnicode_READ_CHAR(b, 0);
        if (first != other) return first < other;
    }
    return PyUnicode_Compare(a, b) < 0;
}

// The order of exact strings; runs no Python code.
void sort_strings(PyObject *const *keys, Order &order) {
    constexpr size_t kFew = 12;
    uint32_t *const first = order.data();
    if (order.size() > kFew) {
        std::sort(first, first + order.size(), [=](uint32_t a, uint32_t b) { return is_less(keys[a], keys[b]); });
        return;
    }
    for (uint32_t i = 1; i < order.size(); ++i) {
        uint32_t place = i;
        for (; place > 0 && is_less(keys[i], keys[first[place - 1]]); --place) first[place] = first[place - 1];
        first[place] = i;
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
        // The comparisons can have found the list through the collector, and put anything there.
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

void sort_any(nb::handle keys, Order &order) {
    const size_t count = order.size();
    const nb::object sorted = sort_objects(keys);
    if (!sorted.is_valid() || static_cast<size_t>(PyList_GET_SIZE(sorted.ptr())) != count) return;
    IdentityTable places;
    for (size_t i = 0; i < count; ++i) places.find_or_add(PyTuple_GET_ITEM(keys.ptr(), i), static_cast<uint32_t>(i));
    // One object may be a key twice, if its hash changed; and the list may have been changed by who
    // found it while it was being sorted. Then the insertion order stands.
    std::vector<bool> taken(count);
    std::vector<uint32_t> result(count);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t place = places.find(PyList_GET_ITEM(sorted.ptr(), static_cast<Py_ssize_t>(i)));
        if (place == IdentityTable::kNew || taken[place]) return;
        taken[place] = true;
        result[i] = place;
    }
    std::copy(result.begin(), result.end(), order.data());
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

namespace {

uint64_t mix(uint64_t hash, uint64_t bits) {
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

// A string is kept in one way only: with one, two or four bytes a character, as few as it needs.
uint64_t mix_text(uint64_t hash, PyObject *text) {
    const auto length = static_cast<size_t>(PyUnicode_GET_LENGTH(text));
    const auto *bytes = static_cast<const unsigned char *>(PyUnicode_DATA(text));
    hash = mix(hash, length << 3 | static_cast<size_t>(PyUnicode_KIND(text)));
    for (size_t left = length * static_cast<size_t>(PyUnicode_KIND(text)); left > 0;) {
        uint64_t word = 0;
        const size_t size = std::min(left, sizeof word);
        std::memcpy(&word, bytes, size);
        hash = mix(hash, word);
        bytes += size, left -= size;
    }
    return hash;
}

}  // namespace

uint64_t Keys::hash() const {
    if (content_hash) return content_hash;
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; ++i) hash = PyUnicode_Check(key(i)) ? mix_text(hash, key(i)) : mix(hash, 0);
    return content_hash = hash | 1;
}

nb::object Keys::order() const {
    if (in_order()) return inserted;
    nb::object tuple = checked(PyTuple_New(count));
    for (uint32_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, incref(key(i)));
    return tuple;
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
    Permutation places;
    if (sorted && count > 1) {
        Order order;
        start(order, count);
        if (all_strings) sort_strings(&PyTuple_GET_ITEM(inserted.ptr(), 0), order);
        else sort_any(inserted, order);
        if (!std::is_sorted(order.data(), order.data() + count)) {
            uint32_t *const ranks = places.allocate(count);
            for (uint32_t i = 0; i < count; ++i) {
                ranks[order[i]] = i;
                ranks[count + i] = order[i];
            }
        }
    }
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

bool equal_tuples(nb::handle a, nb::handle b) {
    if (a.is(b)) return true;
    if (PyTuple_GET_SIZE(a.ptr()) != PyTuple_GET_SIZE(b.ptr())) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a.ptr()); ++i)
        if (!checked(PyObject_RichCompareBool(PyTuple_GET_ITEM(a.ptr(), i), PyTuple_GET_ITEM(b.ptr(), i), Py_EQ)))
            return false;
    return true;
}

bool equal_keys(nb::handle a, nb::handle b) {
    if (a.is(b)) return true;
    const Keys &x = KeysBox::of(a), &y = KeysBox::of(b);
    if (x.size() != y.size()) return false;
    for (uint32_t i = 0; i < x.size(); ++i)
        if (!checked(PyObject_RichCompareBool(x.key(i), y.key(i), Py_EQ))) return false;
    return true;
}

void forget_keys() {
    for (auto *tables : {remembered, by_content})
        for (int sorted : {0, 1})
            for (PyObject *&slot : tables[sorted]) replace(slot, nb::object());
}

}  // namespace pydag
