// SPDX-License-Identifier: Apache-2.0
#include "base/equality.h"

namespace pydag {
namespace {

// The items of a tuple or a list at this moment.
nb::object items_now(nb::handle sequence) {
    return PyTuple_Check(sequence.ptr()) ? nb::borrow(sequence) : checked(PyList_AsTuple(sequence.ptr()));
}

// The values of two dicts for the keys of the first one. False if the second one lacks a key.
bool pair_values(nb::handle a, nb::handle b, ItemPairs &pairs) {
    if (PyDict_GET_SIZE(a.ptr()) != PyDict_GET_SIZE(b.ptr())) return false;
    const nb::object items = checked(PyList_AsTuple(checked(PyDict_Items(a.ptr())).ptr()));
    RefBuffer<16> values, others;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i) {
        PyObject *const item = PyTuple_GET_ITEM(items.ptr(), i);
        nb::object other = find_in_dict(b, PyTuple_GET_ITEM(item, 0));
        if (!other.is_valid()) return false;
        values.push_borrowed(PyTuple_GET_ITEM(item, 1));
        others.push_new(std::move(other));
    }
    pairs = {values.take_tuple(), others.take_tuple()};
    return true;
}

// Whether the error that is raised is one of taking the truth of what a comparison gave: an array has none.
bool is_about_truth() {
    return PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError) &&
           !PyErr_ExceptionMatches(PyExc_RecursionError);
}

bool has_true_equality(nb::handle a, nb::handle b) {
    const nb::object answer = checked(PyObject_RichCompare(a.ptr(), b.ptr(), Py_EQ));
    const int truth = PyObject_IsTrue(answer.ptr());
    if (truth >= 0) return truth != 0;
    if (!is_about_truth()) nb::raise_python_error();
    PyErr_Clear();
    return false;
}

bool are_compared_by_items(nb::handle a, nb::handle b) {
    return (is_tuple_of_items(a) && is_tuple_of_items(b)) || (PyList_CheckExact(a.ptr()) && PyList_CheckExact(b.ptr()));
}

Sameness compare(nb::handle a, nb::handle b, ItemPairs &pairs) {
    if (PyDict_CheckExact(a.ptr()) && PyDict_CheckExact(b.ptr()))
        return pair_values(a, b, pairs) ? Sameness::kByItems : Sameness::kDifferent;
    if (!are_compared_by_items(a, b)) return as_sameness(has_true_equality(a, b));
    pairs = {items_now(a), items_now(b)};
    return Sameness::kByItems;
}

// The shape of an array; None where an object has no shape, or one that is no tuple.
nb::object shape_of(nb::handle leaf) {
    PyObject *const x = leaf.ptr();
    // Most leaves that are no arrays are numbers or text: their classes needn't be asked.
    if (x == Py_None || PyFloat_CheckExact(x) || PyLong_Check(x) || PyUnicode_CheckExact(x)) return nb::none();
    nb::object shape = nb::getattr(leaf, "shape", nb::none());
    return PyTuple_Check(shape.ptr()) ? shape : nb::none();
}

}  // namespace

bool are_equal_objects(nb::handle a, nb::handle b) {
    if (a.is(b)) return true;
    if (!PyTuple_CheckExact(a.ptr()) || !PyTuple_CheckExact(b.ptr())) return are_same_in_pairs(a, b, compare);
    // The values of meta fields are mostly the same objects, or strings and numbers.
    const Py_ssize_t size = PyTuple_GET_SIZE(a.ptr());
    if (size != PyTuple_GET_SIZE(b.ptr())) return false;
    for (Py_ssize_t i = 0; i < size; ++i) {
        PyObject *const x = PyTuple_GET_ITEM(a.ptr(), i), *const y = PyTuple_GET_ITEM(b.ptr(), i);
        if (x == y) continue;
        if (!x || !y || Py_TYPE(x) != Py_TYPE(y) || !(is_exact_str(x) || PyLong_CheckExact(x) || PyFloat_CheckExact(x)))
            return are_same_in_pairs(a, b, compare);
        if (!checked(PyObject_RichCompareBool(x, y, Py_EQ))) return false;
    }
    return true;
}

bool differ_in_shape(nb::handle leaf, nb::handle other) {
    if (leaf.is(other)) return false;
    const nb::object shape = shape_of(leaf), others = shape.is_none() ? shape : shape_of(other);
    if (others.is_none()) return false;
    const int are_equal = PyObject_RichCompareBool(shape.ptr(), others.ptr(), Py_EQ);
    if (are_equal < 0) PyErr_Clear();  // sizes that are symbols: nobody knows
    return are_equal == 0;
}

}  // namespace pydag
