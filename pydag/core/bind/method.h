// SPDX-License-Identifier: Apache-2.0
//
// How the operations on trees are bound: by hand, which is the fastest way in; a small tree is
// flattened in less time than a general dispatch takes. They take everything by position; names, defaults
// and documentation come from Python (public_function.h).
#pragma once

#include "base/error.h"

namespace pydag {

using Arguments = PyObject *const *;

template <size_t count, nb::object (*operation)(Arguments)>
PyObject *entry(PyObject *, Arguments arguments, Py_ssize_t given) {
    if (given != count) {
        PyErr_Format(PyExc_TypeError, "expected %zu arguments, got %zd", count, given);
        return nullptr;
    }
    try {
        return operation(arguments).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

template <size_t count, nb::object (*operation)(Arguments)>
PyMethodDef method(const char *name) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry<count, operation>)), METH_FASTCALL,
            nullptr};
}

}  // namespace pydag
