// SPDX-License-Identifier: Apache-2.0
#include "nodes/meta_values.h"

#include "base/constants.h"
#include "base/error.h"
#include "base/object_set.h"
#include "types/fields.h"

#include <string>
#include <vector>

namespace pydag {
namespace {

bool is_array(PyObject *value) { return has_class_attribute(Py_TYPE(value), constants.dlpack); }

bool is_plain(PyObject *value) {
    return value == Py_None || PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) ||
           PyFloat_CheckExact(value) || PyBytes_CheckExact(value) || PyFunction_Check(value) || PyType_Check(value) ||
           PyCFunction_Check(value);
}

// A value, and where it stands within that of the field.
struct Part {
    nb::object value;
    std::string path;
};

void add_items(std::vector<Part> &parts, const nb::object &items, const std::string &path) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i)
        parts.push_back({nb::borrow(PyTuple_GET_ITEM(items.ptr(), i)), path + "[" + std::to_string(i) + "]"});
}

// Adds what a container or a partial holds. Subclasses are read past their own code.
void add_parts(std::vector<Part> &parts, const Part &whole) {
    PyObject *const value = whole.value.ptr();
    if (PyTuple_Check(value))
        add_items(parts, checked(PyTuple_GetSlice(value, 0, PyTuple_GET_SIZE(value))), whole.path);
    else if (PyList_Check(value)) add_items(parts, checked(PyList_AsTuple(value)), whole.path);
    else if (PyAnySet_Check(value) || PyObject_TypeCheck(value, constants.deque))
        add_items(parts, checked(PySequence_Tuple(value)), whole.path);
    else if (PyDict_Check(value)) {
        const nb::object pairs = checked(PyDict_Items(value));
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.ptr()); ++i) {
            PyObject *const pair = PyList_GET_ITEM(pairs.ptr(), i);
            parts.push_back({nb::borrow(PyTuple_GET_ITEM(pair, 1)),
                             whole.path + "[" + text_of(short_repr(PyTuple_GET_ITEM(pair, 0))) + "]"});
        }
    } else if (Py_TYPE(value) == constants.partial) {
        parts.push_back({checked(PyObject_GetAttr(value, constants.args)), whole.path + ".args"});
        parts.push_back({checked(PyObject_GetAttr(value, constants.keywords)), whole.path + ".keywords"});
    }
}

}  // namespace

bool is_surely_no_array(PyObject *value) {
    if (is_plain(value)) return true;
    if (!PyTuple_CheckExact(value)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
        if (!is_plain(PyTuple_GET_ITEM(value, i))) return false;
    return true;
}

void require_no_arrays(const Registration &registration, nb::handle meta) {
    for (size_t field = 0; field < registration.meta_access.size(); ++field) {
        PyObject *const value = PyTuple_GET_ITEM(meta.ptr(), static_cast<Py_ssize_t>(field));
        if (is_surely_no_array(value)) continue;
        const std::string name = text_of(registration.meta_access[field].name);
        std::vector<Part> parts;
        ObjectSet met;
        parts.push_back({nb::borrow(value), name});
        for (size_t i = 0; i < parts.size(); ++i) {
            const Part part = parts[i];
            if (is_array(part.value.ptr())) {
                const std::string where = i ? part.path + " is " : "";
                fail(PyExc_TypeError,
                     ".%s is a meta field of %R, and holds an array: %s%U\n"
                     "  Meta fields are part of the structure, which is compared by == and hashed. Make the field a "
                     "data field; or keep the numbers there as a tuple.",
                     name.c_str(), registration.type.ptr(), where.c_str(), short_repr(part.value).ptr());
            }
            if (!is_plain(part.value.ptr()) && met.add(part.value.ptr())) add_parts(parts, part);
        }
    }
}

}  // namespace pydag
