// SPDX-License-Identifier: Apache-2.0
//
// Reads the arguments of methods that optree has, too. An argument of the wrong type gives nanobind's TypeError, which
// begins like optree's (by pybind11). Also makes text for Python.
#pragma once

#include "spec/spec.h"

namespace pydag {

// A spec.
inline const Structure &spec_argument(nb::handle object) {
    if (!nb::isinstance<Spec>(object)) throw nb::next_overload();
    return spec_of(object).structure();
}

// A function, or null for None.
inline nb::handle function_argument(nb::handle object) {
    if (object.is_none()) return nb::handle();
    if (!PyCallable_Check(object.ptr())) throw nb::next_overload();
    return object;
}

// True, False, None, or an object with a truth value of its own.
inline bool flag_argument(nb::handle object) {
    if (object.is_none()) return false;
    PyNumberMethods *const methods = Py_TYPE(object.ptr())->tp_as_number;
    if (!methods || !methods->nb_bool) throw nb::next_overload();
    return checked(PyObject_IsTrue(object.ptr())) != 0;
}

// An integer, or an object that can be converted to one; no float.
inline Py_ssize_t index_argument(nb::handle object) {
    if (PyFloat_Check(object.ptr()) || !PyNumber_Check(object.ptr())) throw nb::next_overload();
    nb::object number = nb::steal(PyNumber_Index(object.ptr()));
    if (!number.is_valid()) {
        PyErr_Clear();
        number = nb::steal(PyNumber_Long(object.ptr()));
    }
    const Py_ssize_t index = number.is_valid() ? PyLong_AsSsize_t(number.ptr()) : -1;
    if (!PyErr_Occurred()) return index;
    PyErr_Clear();
    throw nb::next_overload();
}

// An iterator over an iterable.
inline nb::object iterator_argument(nb::handle object) {
    if (!Py_TYPE(object.ptr())->tp_iter && !PySequence_Check(object.ptr())) throw nb::next_overload();
    return checked(PyObject_GetIter(object.ptr()));
}

// A str. Bytes that aren't UTF-8, such as those of lone surrogates, are escaped.
inline nb::object text_object(const std::string &text) {
    return checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace pydag
