// SPDX-License-Identifier: Apache-2.0
#include "types/values.h"

#include "base/interrupt.h"
#include "base/pair_set.h"
#include "base/text_hash.h"
#include "base/tuples.h"

#include <bit>
#include <cmath>

namespace pydag {
namespace {

// Compared by their type's own function, which runs no Python code.
bool is_plain(PyTypeObject *type) {
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBool_Type || type == &PyBytes_Type ||
           type == &PyRange_Type;
}

// Whether an object is a tuple that consists only of its items.
bool is_tuple(PyObject *object, Namespace *space) {
    if (!PyTuple_Check(object)) return false;
    PyTypeObject *const type = Py_TYPE(object);
    if (!space) return type->tp_richcompare == PyTuple_Type.tp_richcompare && type->tp_hash == PyTuple_Type.tp_hash;
    const TypeInfo info = space->find(type);
    return !info.registration && !is_leaf(info.kind);
}

// The items of a tuple, a list, or a dict in a row, as a list that nobody else has; null for what
// isn't compared by items, and for what somebody hasn't filled yet.
nb::object items_of(PyObject *object, Namespace *space) {
    nb::object items;
    if (is_tuple(object, space) || (!space && PyList_CheckExact(object))) {
        const nb::object tuple =
            kFreeThreaded && PyList_Check(object) ? checked(PyList_AsTuple(object)) : nb::borrow(object);
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(tuple.ptr());
        PyObject **const first = PySequence_Fast_ITEMS(tuple.ptr());
        for (Py_ssize_t i = 0; i < size; ++i)
            if (!first[i]) return items;
        items = tuple_of(first, static_cast<size_t>(size));
    } else if (is_frozen_dict(object) || (!space && PyDict_CheckExact(object))) {
        items = checked(PyList_AsTuple(checked(PyDict_Items(object)).ptr()));
    }
    return items;
}

bool is_same_float(double a, double b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// By Python's own hash; by the address where there is none.
uint64_t hash_object(nb::handle object) {
    if (PyType_Check(object.ptr())) return hash_address(object.ptr());
    const Py_hash_t hash = PyObject_Hash(object.ptr());
    if (hash != -1) return static_cast<uint64_t>(hash);
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) nb::raise_python_error();
    PyErr_Clear();
    return hash_address(object.ptr());
}

// Compares two objects that aren't the same object.
enum class Sameness { kSame, kDifferent, kByItems };

Sameness compare(PyObject *a, PyObject *b, Namespace *space, nb::object &items, nb::object &others) {
    const auto as_sameness = [](bool is_same) { return is_same ? Sameness::kSame : Sameness::kDifferent; };
    PyTypeObject *const type = Py_TYPE(a);
    if (type != Py_TYPE(b)) return Sameness::kDifferent;
    if (is_plain(type)) return as_sameness(checked(PyObject_RichCompareBool(a, b, Py_EQ)) != 0);
    if (type == &PyFloat_Type) return as_sameness(is_same_float(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b)));
    if (type == &PyComplex_Type) {
        const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
        return as_sameness(is_same_float(x.real, y.real) && is_same_float(x.imag, y.imag));
    }
    items = items_of(a, space), others = items_of(b, space);
    if (items.is_valid() && others.is_valid())
        return PyTuple_GET_SIZE(items.ptr()) == PyTuple_GET_SIZE(others.ptr()) ? Sameness::kByItems
                                                                               : Sameness::kDifferent;
    const bool has_equality = !space && !items.is_valid() && !others.is_valid() && !PyType_Check(a) &&
                              type->tp_hash != PyObject_HashNotImplemented;
    return as_sameness(has_equality && checked(PyObject_RichCompareBool(a, b, Py_EQ)));
}

}  // namespace

bool is_same_value(nb::handle a, nb::handle b, Namespace *space) {
    if (a.is(b)) return true;
    if (Py_TYPE(a.ptr()) != Py_TYPE(b.ptr())) return false;
    // A pair that comes again, shared or by a cycle, is being compared already.
    PairSet<nb::handle, nb::handle> met;
    RefBuffer<8> pending;
    pending.push_borrowed(b.ptr()), pending.push_borrowed(a.ptr());
    while (!pending.empty()) {
        nb::object x = pending.pop_owned(), y = pending.pop_owned(), items, others;
        interruptible_step();
        if (x.is(y) || met.has(x, y)) continue;
        const Sameness sameness = compare(x.ptr(), y.ptr(), space, items, others);
        if (sameness == Sameness::kDifferent) return false;
        if (sameness == Sameness::kSame) continue;
        met.add(x, y);
        for (Py_ssize_t i = PyTuple_GET_SIZE(items.ptr()); i-- > 0;) {
            pending.push_borrowed(PyTuple_GET_ITEM(others.ptr(), i));
            pending.push_borrowed(PyTuple_GET_ITEM(items.ptr(), i));
        }
    }
    return true;
}

uint64_t ValueHashes::hash(nb::handle value, int levels) {
    PyTypeObject *const type = Py_TYPE(value.ptr());
    if (is_plain(type)) return hash_object(value);
    if (type == &PyFloat_Type || type == &PyComplex_Type) {
        const Py_complex number = PyComplex_AsCComplex(value.ptr());
        return std::isnan(number.real) || std::isnan(number.imag) ? 1 : hash_object(value);
    }
    // Of the value itself nothing is remembered: it is hashed once, or is a tuple that nobody else has.
    const bool is_within = levels < kLevels;
    if (is_within)
        if (const auto known = known_.find({value.ptr(), levels}); known != known_.end()) return known->second;
    const nb::object items = items_of(value.ptr(), space_);
    if (!items.is_valid()) return space_ ? hash_address(value.ptr()) : hash_object(value);
    const uint64_t hash = hash_items(items, levels);
    if (is_within) {
        kept_.push_borrowed(value.ptr());
        known_.emplace(std::pair(value.ptr(), levels), hash);
    }
    return hash;
}

uint64_t ValueHashes::hash_items(nb::handle items, int levels) {
    auto result = static_cast<uint64_t>(PyTuple_GET_SIZE(items.ptr()));
    for (Py_ssize_t i = 0; levels > 0 && i < PyTuple_GET_SIZE(items.ptr()); ++i) {
        interruptible_step();
        result = mix(result, hash(PyTuple_GET_ITEM(items.ptr(), i), levels - 1));
    }
    return result;
}

uint32_t ValueTable::number_of(nb::handle value) {
    if (const uint32_t number = known_.find(value.ptr()); number != IdentityTable::kNew) return number;
    const nb::object owned = nb::borrow(value);
    const uint64_t hash = hashes_.of(value);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto found = first; found != last; ++found)
        if (is_same_value(values_[found->second], value, space_)) return found->second;
    const auto number = static_cast<uint32_t>(values_.size());
    values_.push_borrowed(value.ptr());
    known_.find_or_add(value.ptr(), number);
    by_hash_.emplace(hash, number);
    return number;
}

}  // namespace pydag
