// SPDX-License-Identifier: Apache-2.0
#include "nodes/nodes.h"

#include "base/constants.h"
#include "base/error.h"
#include "base/object_set.h"
#include "base/threads.h"
#include "types/fields.h"

#include <algorithm>
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

// A value, and the step to it from the value that holds it.
struct Part {
    nb::object value;
    size_t holder;
    Step step;
};
using Parts = std::vector<Part>;

void add(Parts &parts, size_t holder, nb::object value, nb::object entry, bool is_attribute = false) {
    parts.push_back({std::move(value), holder, {std::move(entry), is_attribute}});
}

// Adds the items of a tuple; if it isn't filled yet, those that are there.
void add_items(Parts &parts, size_t holder, const nb::object &items) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i)
        if (PyObject *const item = PyTuple_GET_ITEM(items.ptr(), i))
            add(parts, holder, nb::borrow(item), checked(PyLong_FromSsize_t(i)));
}

// Adds what a container or a partial holds. Subclasses are read past their own code.
void add_parts(Parts &parts, size_t holder) {
    const nb::object whole = parts[holder].value;
    PyObject *const value = whole.ptr();
    if (PyTuple_Check(value)) add_items(parts, holder, whole);
    else if (PyList_Check(value)) {
        const Locked locked(value);
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i)
            if (PyObject *const item = PyList_GET_ITEM(value, i))
                add(parts, holder, nb::borrow(item), checked(PyLong_FromSsize_t(i)));
    } else if (PyAnySet_Check(value) || PyObject_TypeCheck(value, constants.deque))
        add_items(parts, holder, checked(PySequence_Tuple(value)));
    else if (PyDict_Check(value)) {
        const nb::object pairs = checked(PyDict_Items(value));
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.ptr()); ++i) {
            PyObject *const pair = PyList_GET_ITEM(pairs.ptr(), i);
            add(parts, holder, nb::borrow(PyTuple_GET_ITEM(pair, 1)), nb::borrow(PyTuple_GET_ITEM(pair, 0)));
        }
    } else if (Py_TYPE(value) == constants.partial)
        for (PyObject *const name : {constants.args, constants.keywords})
            add(parts, holder, checked(PyObject_GetAttr(value, name)), nb::borrow(name), true);
}

// The path from a field to a part of its value.
std::string path_to(const Parts &parts, size_t part, const std::string &field) {
    Steps steps;
    for (; part != 0; part = parts[part].holder) steps.push_back(parts[part].step);
    std::reverse(steps.begin(), steps.end());
    return path_text(steps, field.c_str());
}

}  // namespace

bool is_surely_no_array(PyObject *value) {
    if (is_plain(value)) return true;
    if (!PyTuple_CheckExact(value)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
        if (PyObject *const item = PyTuple_GET_ITEM(value, i); !item || !is_plain(item)) return false;
    return true;
}

void require_no_arrays(const Registration &registration, nb::handle meta) {
    for (size_t field = 0; field < registration.meta_access.size(); ++field) {
        PyObject *const value = PyTuple_GET_ITEM(meta.ptr(), static_cast<Py_ssize_t>(field));
        if (is_surely_no_array(value)) continue;
        const std::string name = text_of(registration.meta_access[field].name);
        Parts parts;
        ObjectSet met;
        add(parts, 0, nb::borrow(value), nb::object());
        for (size_t i = 0; i < parts.size(); ++i) {
            PyObject *const part = parts[i].value.ptr();
            if (is_array(part)) {
                const std::string where = i ? path_to(parts, i, name) + " is " : "";
                fail(PyExc_TypeError,
                     ".%s is a meta field of %R, and holds an array: %s%U\n"
                     "  Meta fields are part of the structure, which is compared by == and hashed. Make the field a "
                     "data field; or keep the numbers there as a tuple.",
                     name.c_str(), registration.type.ptr(), where.c_str(), short_repr(part).ptr());
            }
            if (!is_plain(part) && met.add(part)) add_parts(parts, i);
        }
    }
}

}  // namespace pydag
