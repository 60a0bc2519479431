// SPDX-License-Identifier: Apache-2.0
#include "jit/static_leaves.h"

#include "base/constants.h"

namespace pydag {
namespace {

// Classes whose equal instances are interchangeable.
bool is_plain(PyTypeObject *type) {
    return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyBytes_Type ||
           type == Py_TYPE(Py_None);
}

// The class of a plain value, or the classes of the items of a tuple of these; null for any other value.
nb::object plain_classes(PyObject *value) {
    if (is_plain(Py_TYPE(value))) return class_of(value);
    if (!PyTuple_CheckExact(value)) return nb::object();
    const Py_ssize_t count = PyTuple_GET_SIZE(value);
    nb::object classes = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyTypeObject *const type = Py_TYPE(PyTuple_GET_ITEM(value, i));
        if (!is_plain(type)) return nb::object();
        PyTuple_SET_ITEM(classes.ptr(), i, incref(as_object(type)));
    }
    return classes;
}

nb::object value_of(nb::handle leaf) { return checked(PyObject_GetAttr(leaf.ptr(), constants.value)); }

// Null if there is none, or if Python code, which finds the dict through the garbage collector, has changed it.
nb::object table_in(const nb::object &tables, const nb::object &classes) {
    nb::object table = find_in_dict(tables, classes);
    return table.is_valid() && PyDict_CheckExact(table.ptr()) ? table : nb::object();
}

}  // namespace

StaticLeaves make_static_leaves() { return {checked(PyDict_New()), checked(PyDict_New())}; }

nb::object find_static_leaf(const StaticLeaves &leaves, nb::handle value) {
    const nb::object classes = plain_classes(value.ptr());
    if (classes.is_valid()) {
        const nb::object table = table_in(leaves.by_value, classes);
        return table.is_valid() ? find_in_dict(table, value) : nb::object();
    }
    nb::object leaf = find_in_dict(leaves.by_id, checked(PyLong_FromVoidPtr(value.ptr())));
    // A leaf owns its value, so no other object can have the id while the leaf lives.
    return leaf.is_valid() && value_of(leaf).is(value) ? leaf : nb::object();
}

void add_static_leaf(const StaticLeaves &leaves, nb::handle leaf) {
    const nb::object value = value_of(leaf), classes = plain_classes(value.ptr());
    if (!classes.is_valid()) {
        const nb::object id = checked(PyLong_FromVoidPtr(value.ptr()));
        checked(PyDict_SetItem(leaves.by_id.ptr(), id.ptr(), leaf.ptr()));
        return;
    }
    nb::object table = table_in(leaves.by_value, classes);
    if (!table.is_valid()) {
        table = checked(PyDict_New());
        checked(PyDict_SetItem(leaves.by_value.ptr(), classes.ptr(), table.ptr()));
    }
    checked(PyDict_SetItem(table.ptr(), value.ptr(), leaf.ptr()));
}

void forget_static_leaves(const StaticLeaves &leaves) {
    PyDict_Clear(leaves.by_value.ptr());
    PyDict_Clear(leaves.by_id.ptr());
}

}  // namespace pydag
