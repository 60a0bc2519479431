// SPDX-License-Identifier: Apache-2.0
#include "types/keys.h"

#include "base/identity_table.h"
#include "base/tuples.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace pydag {
namespace {

// Numbers that the keys of a mapping are compared by: they tell nearly always, and cost one comparison of words.
struct NumberedKey {
    uint64_t number;  // of two keys with different numbers, that with the lower one comes first
    uint32_t index;
};
using NumberedKeys = Buffer<NumberedKey, 24>;

// One item of each key: the key itself, or an item of a tuple.
class Column {
public:
    Column(PyObject *const *keys, uint32_t count, Py_ssize_t item = kKeys) : keys_(keys), count_(count), item_(item) {}
    uint32_t size() const { return count_; }
    PyObject *operator[](uint32_t i) const { return item_ == kKeys ? keys_[i] : PyTuple_GET_ITEM(keys_[i], item_); }

    template <class Predicate>
    bool all(Predicate predicate) const {
        for (uint32_t i = 0; i < count_; ++i)
            if (!predicate((*this)[i])) return false;
        return true;
    }

private:
    static constexpr Py_ssize_t kKeys = -1;  // the keys themselves
    PyObject *const *keys_;
    uint32_t count_;
    Py_ssize_t item_;
};

// Texts of one byte a character, whose order is that of their bytes.
bool is_narrow(PyObject *text) { return PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND; }

struct Bytes {
    const unsigned char *first;
    size_t size;

    explicit Bytes(PyObject *text)
        : first(PyUnicode_1BYTE_DATA(text)), size(static_cast<size_t>(PyUnicode_GET_LENGTH(text))) {}

    // With how many bytes both begin, at most `most`.
    size_t common(const Bytes &other, size_t most) const {
        most = std::min({most, size, other.size});
        return static_cast<size_t>(std::mismatch(first, first + most, other.first).first - first);
    }
    // The eight bytes from `begin` on, as a number; zeros where the text is shorter.
    uint64_t number(size_t begin) const {
        constexpr size_t kWord = sizeof(uint64_t);
        const size_t rest = size - begin;
        uint64_t number = 0;
        if (rest >= kWord) {
            for (size_t i = 0; i < kWord; ++i) number = number << 8 | first[begin + i];
            return number;
        }
        for (size_t i = 0; i < rest; ++i) number = number << 8 | first[begin + i];
        return rest == 0 ? 0 : number << (8 * (kWord - rest));
    }
};

// By what comes behind their common beginning; by the first character, where one takes more than a byte.
void number_texts(const Column &texts, NumberedKey *numbered) {
    if (!texts.all(is_narrow)) {
        for (uint32_t i = 0; i < texts.size(); ++i)
            numbered[i] = {PyUnicode_GET_LENGTH(texts[i]) > 0 ? PyUnicode_READ_CHAR(texts[i], 0) : 0, i};
        return;
    }
    const Bytes first(texts[0]);
    size_t common = first.size;
    for (uint32_t i = 1; i < texts.size(); ++i) common = first.common(Bytes(texts[i]), common);
    for (uint32_t i = 0; i < texts.size(); ++i) numbered[i] = {Bytes(texts[i]).number(common), i};
}

// False if one has more than 64 bits.
bool number_ints(const Column &ints, NumberedKey *numbered) {
    for (uint32_t i = 0; i < ints.size(); ++i) {
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(ints[i], &overflow);
        if (overflow != 0) return false;
        numbered[i] = {static_cast<uint64_t>(value) ^ uint64_t{1} << 63, i};
    }
    return true;
}

bool is_exact_int(PyObject *object) { return PyLong_CheckExact(object); }

bool number_column(const Column &column, NumberedKey *numbered) {
    if (column.all(is_exact_int)) return number_ints(column, numbered);
    if (!column.all(is_exact_str)) return false;
    number_texts(column, numbered);
    return true;
}

bool is_tuple_of_texts_and_ints(PyObject *key) {
    if (!PyTuple_CheckExact(key)) return false;
    PyObject *const *const items = &PyTuple_GET_ITEM(key, 0);
    return std::all_of(items, items + PyTuple_GET_SIZE(key),
                       [](PyObject *item) { return item && (is_exact_str(item) || is_exact_int(item)); });
}

// By the first item that isn't the same object in all of them.
bool number_tuples(PyObject *const *tuples, uint32_t count, NumberedKey *numbered) {
    Py_ssize_t shortest = PyTuple_GET_SIZE(tuples[0]);
    for (uint32_t i = 1; i < count; ++i) shortest = std::min(shortest, PyTuple_GET_SIZE(tuples[i]));
    for (Py_ssize_t item = 0; item < shortest; ++item) {
        const Column column(tuples, count, item);
        if (!column.all([first = column[0]](PyObject *object) { return object == first; }))
            return number_column(column, numbered);
    }
    return false;
}

struct IncomparableError {};

// Less than zero where `a` comes first.
int compare(PyObject *a, PyObject *b) {
    if (a == b) return 0;
    if (is_exact_str(a) && is_exact_str(b)) return PyUnicode_Compare(a, b);
    if (!is_exact_int(a) || !is_exact_int(b)) throw IncomparableError();
    if (checked(PyObject_RichCompareBool(a, b, Py_LT))) return -1;
    return checked(PyObject_RichCompareBool(a, b, Py_GT));
}

// Numbers the keys, if all are exact strings, all exact ints, or all tuples of these; false for other keys, and for
// those that only their own comparison can tell apart. Runs no Python code.
bool number_keys(PyObject *const *keys, uint32_t count, NumberedKeys &numbered) {
    if (count == 0) return false;
    NumberedKey *const made = numbered.extend(count);
    if (!PyTuple_CheckExact(keys[0])) return number_column(Column(keys, count), made);
    return std::all_of(keys, keys + count, is_tuple_of_texts_and_ints) && number_tuples(keys, count, made);
}

// Whether `a` comes before `b`: two keys that have the same number. Throws IncomparableError where they don't compare.
bool is_less(PyObject *a, PyObject *b) {
    if (!PyTuple_CheckExact(a)) return compare(a, b) < 0;
    const Py_ssize_t size = PyTuple_GET_SIZE(a), other = PyTuple_GET_SIZE(b);
    for (Py_ssize_t i = 0; i < std::min(size, other); ++i)
        if (const int order = compare(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i)); order != 0) return order < 0;
    return size < other;
}

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
