// SPDX-License-Identifier: Apache-2.0
//
// The function that a fold or a rewrite calls for an object: one for all objects, or one for each class,
// looked up along the class's MRO. Classes are found by identity, so no code of a metaclass runs.
#pragma once

#include "base/identity_table.h"

#include <string>

namespace pydag {

class ClassFunctions {
public:
    // `given`: a function, or a mapping from classes to functions, which is read once. A TypeError for anything else
    // calls it `name`.
    ClassFunctions(nb::handle given, const char *name);

    // Null if the mapping has no class of the MRO. Runs no Python code.
    PyObject *find(PyObject *object) {
        PyTypeObject *const type = Py_TYPE(object);
        if (is_one_for_all_ || type == last_type_) return last_;
        return find_by_class(type);
    }
    // The same; TypeError if there is none.
    nb::handle get(nb::handle object) {
        PyObject *const function = find(object.ptr());
        if (!function) fail_missing(object.ptr());
        return function;
    }

private:
    [[noreturn]] void fail_missing(PyObject *object) const;
    PyObject *find_by_class(PyTypeObject *type);
    void add(PyObject *cls, PyObject *function, const char *name);

    bool is_one_for_all_ = false;
    PyTypeObject *last_type_ = nullptr;
    PyObject *last_ = nullptr;  // the function of that type, borrowed
    RefBuffer<8> functions_, classes_, types_;
    IdentityTable by_class_, by_type_;  // for the classes in the mapping; for all types of objects met so far
};

}  // namespace pydag
