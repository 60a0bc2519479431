// SPDX-License-Identifier: Apache-2.0
//
// Which constants the core may keep alive after the user has dropped them: small texts, small numbers, None, and
// tuples of these.
#pragma once

#include "base/capi.h"

namespace pydag {

inline constexpr size_t kLargestConstant = 1024;

// Whether an object is a text, bytes, a number, a flag or None, of no class derived from these.
inline bool is_constant(PyObject *object) {
    return is_exact_str(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
           PyComplex_CheckExact(object) || PyBytes_CheckExact(object) || PyBool_Check(object) || object == Py_None;
}
// Whether `copy.deepcopy` returns an object as it is.
inline bool is_kept_by_deepcopy(PyObject *object) {
    return is_constant(object) || PyType_Check(object) || PyFunction_Check(object) || PyCFunction_CheckExact(object) ||
           PyRange_Check(object) || object == Py_Ellipsis;
}

// About how many bytes a small constant takes; 0 for a large one, and for anything else.
inline size_t small_constant_size(PyObject *object) {
    constexpr size_t kHeader = 56;  // of text, which has the longest
    size_t content = 0;
    if (is_exact_str(object)) {
        content = static_cast<size_t>(PyUnicode_GET_LENGTH(object)) * static_cast<size_t>(PyUnicode_KIND(object));
    } else if (PyBytes_CheckExact(object)) {
        content = static_cast<size_t>(PyBytes_GET_SIZE(object));
    } else if (PyLong_CheckExact(object)) {
        int overflow = 0;
        (void)PyLong_AsLongLongAndOverflow(object, &overflow);
        if (overflow != 0) return 0;
    } else if (!is_constant(object)) {
        return 0;
    }
    return content <= kLargestConstant ? kHeader + content : 0;
}
// The same; tuples of such constants count, too.
inline size_t constant_size(PyObject *object) {
    if (!PyTuple_CheckExact(object)) return small_constant_size(object);
    size_t total = 64;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
        PyObject *const item = PyTuple_GET_ITEM(object, i);
        const size_t size = item ? small_constant_size(item) : 0;
        if (size == 0) return 0;
        total += size;
    }
    return total;
}

}  // namespace pydag
