// SPDX-License-Identifier: Apache-2.0
#include "walks/jit_call.h"

#include "base/tuples.h"
#include "spec/spec_key.h"
#include "walks/result.h"

namespace pydag {
namespace {

// What a function was compiled for, and how the leaves of one structure are handed to it: the key; a
// tag, which belongs to the structure; the positions of the static leaves; these leaves; the positions
// of the donated ones, None where there are none; those of the kept ones, None where all are kept; the
// positions of leaves that are traced or not according to their class, and the classes they must have.
struct Recipe {
    explicit Recipe(nb::handle tuple) {
        if (!PyTuple_CheckExact(tuple.ptr()) || PyTuple_GET_SIZE(tuple.ptr()) != 8)
            fail(PyExc_TypeError, "expected a tuple of eight, got %U.", short_repr(tuple).ptr());
        PyObject *const *const items = &PyTuple_GET_ITEM(tuple.ptr(), 0);
        key = items[0], tag = items[1], positions = items[2], statics = items[3], donated = items[4], kept = items[5];
        checked_leaves = items[6], classes = items[7];
        for (PyObject *part : {positions, statics, checked_leaves, classes}) require_tuple(part);
        for (PyObject *part : {donated, kept})
            if (part != Py_None) require_tuple(part);
    }
    static void require_tuple(PyObject *part) {
        if (!PyTuple_CheckExact(part)) fail(PyExc_TypeError, "expected a tuple, got %U.", short_repr(part).ptr());
    }
    PyObject *key, *tag, *positions, *statics, *donated, *kept, *checked_leaves, *classes;
};

PyObject *leaf_at(const Leaves &leaves, PyObject *position) {
    const size_t index = PyLong_AsSize_t(position);
    if (PyErr_Occurred()) nb::raise_python_error();
    if (index >= leaves.size()) fail(PyExc_IndexError, "there is no leaf %zu", index);
    return leaves[index];
}

nb::object leaves_at(const Leaves &leaves, PyObject *positions) {
    const Py_ssize_t count = PyTuple_GET_SIZE(positions);
    nb::object tuple = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i)
        PyTuple_SET_ITEM(tuple.ptr(), i, incref(leaf_at(leaves, PyTuple_GET_ITEM(positions, i))));
    return tuple;
}

bool has_statics(const Leaves &leaves, const Recipe &recipe) {
    const Py_ssize_t count = PyTuple_GET_SIZE(recipe.positions);
    if (count != PyTuple_GET_SIZE(recipe.statics)) return false;
    for (Py_ssize_t i = 0; i < count; ++i)
        if (leaf_at(leaves, PyTuple_GET_ITEM(recipe.positions, i)) != PyTuple_GET_ITEM(recipe.statics, i)) return false;
    return true;
}

bool has_classes(const Leaves &leaves, const Recipe &recipe) {
    const Py_ssize_t count = PyTuple_GET_SIZE(recipe.checked_leaves);
    if (count != PyTuple_GET_SIZE(recipe.classes)) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *const leaf = leaf_at(leaves, PyTuple_GET_ITEM(recipe.checked_leaves, i));
        if (as_object(Py_TYPE(leaf)) != PyTuple_GET_ITEM(recipe.classes, i)) return false;
    }
    return true;
}

}  // namespace

nb::object call_flat(nb::handle function, PyObject *known, nb::handle arguments, const FlattenOptions &options) {
    Flattened parts(arguments, options);
    const nb::object spec_key = SpecKeyBox::make(parts.take_spec());
    const nb::object tuple = nb::borrow(PyDict_GetItemWithError(known, spec_key.ptr()));
    if (!tuple.is_valid()) {
        if (PyErr_Occurred()) nb::raise_python_error();
        return nb::borrow(Py_NotImplemented);
    }
    const Recipe recipe(tuple);
    if (!has_statics(parts.leaves(), recipe) || !has_classes(parts.leaves(), recipe))
        return nb::borrow(Py_NotImplemented);
    nb::object donated = nb::borrow(recipe.tag);
    if (recipe.donated != Py_None) donated = tuple_of(donated, leaves_at(parts.leaves(), recipe.donated));
    const nb::object kept = recipe.kept == Py_None ? parts.take_leaves() : leaves_at(parts.leaves(), recipe.kept);
    return build_result(call(function, nb::handle(recipe.key), donated, kept));
}

}  // namespace pydag
