// SPDX-License-Identifier: Apache-2.0
#include "structure/shapes.h"

namespace pydag {
namespace {

// Most leaves that are no arrays are numbers or text: their classes needn't be asked.
bool is_plain(nb::handle leaf) {
    PyObject *const x = leaf.ptr();
    return x == Py_None || PyFloat_CheckExact(x) || PyLong_Check(x) || PyUnicode_CheckExact(x);
}

nb::object shape_of(nb::handle leaf) { return is_plain(leaf) ? nb::none() : nb::getattr(leaf, "shape", nb::none()); }

}  // namespace

bool differ_in_shape(nb::handle leaf, nb::handle other) {
    if (leaf.is(other)) return false;
    const nb::object shape = shape_of(leaf);
    if (!PyTuple_Check(shape.ptr())) return false;
    const nb::object others = shape_of(other);
    if (!PyTuple_Check(others.ptr())) return false;
    const int are_equal = PyObject_RichCompareBool(shape.ptr(), others.ptr(), Py_EQ);
    if (are_equal < 0) PyErr_Clear();  // sizes that are symbols: nobody knows
    return are_equal == 0;
}

}  // namespace pydag
