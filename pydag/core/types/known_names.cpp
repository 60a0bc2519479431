// SPDX-License-Identifier: Apache-2.0
#include "types/known_names.h"

#include "base/constant_size.h"

#include <algorithm>

namespace pydag {
namespace {

constexpr size_t kMost = 16;
constexpr Py_ssize_t kLongest = 256;  // of aux_data and of names

// Small constants, and tuples of such.
bool is_constant(PyObject *object) {
    if (!object) return false;
    if (!PyTuple_CheckExact(object)) return small_constant_size(object) != 0;
    PyObject *const *const items = &PyTuple_GET_ITEM(object, 0);
    const Py_ssize_t size = PyTuple_GET_SIZE(object);
    const auto is_small = [](PyObject *item) { return item && small_constant_size(item) != 0; };
    return size <= kLongest && std::all_of(items, items + size, is_small);
}

// Two objects without code of their own, as far as they are texts or the same.
bool is_same(PyObject *a, PyObject *b) {
    if (a == b) return true;
    return b && is_exact_str(a) && is_exact_str(b) && PyUnicode_Compare(a, b) == 0;
}

bool is_same_aux(PyObject *known, PyObject *other) {
    if (is_same(known, other)) return true;
    if (!PyTuple_CheckExact(known) || !PyTuple_CheckExact(other) || PyTuple_GET_SIZE(known) != PyTuple_GET_SIZE(other))
        return false;
    PyObject *const *const items = &PyTuple_GET_ITEM(known, 0);
    return std::equal(items, items + PyTuple_GET_SIZE(known), &PyTuple_GET_ITEM(other, 0), is_same);
}

}  // namespace

nb::object KnownNames::find(PyObject *aux_data, Py_ssize_t count) const {
    for (const Known &known : known_)
        if (known.count == count && is_same_aux(known.aux_data.ptr(), aux_data)) return known.names;
    return nb::object();
}

void KnownNames::add(nb::object aux_data, Py_ssize_t count, nb::object names) {
    if (!is_constant(aux_data.ptr()) || !is_constant(names.ptr())) return;
    Known known = {std::move(aux_data), count, std::move(names)};
    if (known_.size() < kMost) return known_.push_back(std::move(known));
    std::swap(known_[next_], known);
    next_ = (next_ + 1) % kMost;
}

}  // namespace pydag
