// SPDX-License-Identifier: Apache-2.0
#include "structure/shapes.h"

namespace pydag {
namespace {

// The shape of an array; None where an object has no shape, or one that is no tuple.
nb::object shape_of(nb::handle leaf) {
    PyObject *const x = leaf.ptr();
    // Most leaves that are no arrays are numbers or text: their classes needn't be asked.
    if (x == Py_None || PyFloat_CheckExact(x) || PyLong_Check(x) || PyUnicode_CheckExact(x)) return nb::none();
    nb::object shape = nb::getattr(leaf, "shape", nb::none());
    return PyTuple_Check(shape.ptr()) ? shape : nb::none();
}

}  // namespace

bool differ_in_shape(nb::handle leaf, nb::handle other) {
    if (leaf.is(other)) return false;
    const nb::object shape = shape_of(leaf), others = shape.is_none() ? shape : shape_of(other);
    if (others.is_none()) return false;
    const int are_equal = PyObject_RichCompareBool(shape.ptr(), others.ptr(), Py_EQ);
    if (are_equal < 0) PyErr_Clear();  // sizes that are symbols: nobody knows
    return are_equal == 0;
}

}  // namespace pydag
