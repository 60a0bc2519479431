// SPDX-License-Identifier: Apache-2.0
//
// The way into a compiled function and out of it again, without Python code between.
#include "base/constants.h"
#include "base/tuples.h"
#include "bind/bind.h"
#include "bind/method.h"
#include "bind/result.h"
#include "spec/spec.h"
#include "spec/spec_key.h"
#include "structure/owners.h"
#include "walks/flatten.h"
#include "walks/unflatten.h"

namespace pydag {
namespace {

// (spec, leaves), to a Result; and back, to (leaves, spec).
nb::object make_result(Arguments a) {
    spec_of(a[0]);
    if (!PyTuple_CheckExact(a[1]) && !PyList_CheckExact(a[1]))
        fail(PyExc_TypeError, "the leaves must be a tuple or a list, got %U.", short_repr(a[1]).ptr());
    return ResultBox::make(nb::borrow(a[0]), nb::borrow(a[1]));
}

Result &result_of(nb::handle object) {
    if (!ResultBox::check(object) || !ResultBox::of(object).spec.is_valid())
        fail(PyExc_TypeError, "expected a Result, got %U.", short_repr(object).ptr());
    return ResultBox::of(object);
}

nb::object open_result(Arguments a) {
    const Result &result = result_of(a[0]);
    return tuple_of(nb::object(result.leaves), nb::object(result.spec));
}

// The DAG of a Result; of anything else that stands for one, its `tree`.
nb::object build_result(nb::object object) {
    if (!ResultBox::check(object)) return checked(PyObject_GetAttr(object.ptr(), constants.tree));
    const Result &result = result_of(object);
    const nb::object spec = result.spec, leaves = result.leaves;
    return unflatten(spec_of(spec).structure(), leaves);
}

nb::object on_build_result(Arguments a) { return build_result(nb::borrow(a[0])); }

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

FlattenOptions options_of_call(PyObject *namespace_, PyObject *identity) {
    FlattenOptions options = FlattenOptions::parse(nb::none(), nb::handle(Py_False), namespace_, identity);
    options.root = nb::borrow(constants.argument_names);
    return options;
}

// (function, known, (args, kwargs), namespace, identity). Calls the function as the recipe says that
// `known` has for the structure of the arguments, and finishes what it returns. NotImplemented where
// there is no recipe, or one for other static leaves than these very objects or for other classes of leaves.
nb::object call_flat(Arguments a) {
    Flattened parts(a[2], options_of_call(a[3], a[4]));
    const nb::object spec_key = SpecKeyBox::make(parts.take_spec());
    const nb::object tuple = nb::borrow(PyDict_GetItemWithError(a[1], spec_key.ptr()));
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
    return build_result(call(a[0], nb::handle(recipe.key), donated, kept));
}

nb::object spec_key(Arguments a) {
    spec_of(a[0]);
    return SpecKeyBox::make(nb::borrow(a[0]));
}

nb::object positions_of(const std::vector<uint32_t> &leaves) {
    nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(leaves.size())));
    for (size_t i = 0; i < leaves.size(); ++i)
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i),
                         checked(PyLong_FromUnsignedLong(leaves[i])).release().ptr());
    return tuple;
}

// (spec), to two tuples: the leaves whose nearest registered owner is a module along some path; of these
// those for which it is none along another.
nb::object on_module_leaves(Arguments a) {
    const ModuleLeaves found = module_leaves(spec_of(a[0]).structure());
    return tuple_of(positions_of(found.owned), positions_of(found.mixed));
}

// (class, namespace). Whether the class is registered there, as one of modules.
nb::object is_module(Arguments a) {
    const NamespaceRef space = Namespace::get(a[1]);
    if (!PyType_Check(a[0])) return nb::borrow(Py_False);
    const TypeInfo info = space->find(reinterpret_cast<PyTypeObject *>(a[0]));
    const bool is_one = info.registration && RegistrationBox::of(info.registration).is_module;
    return nb::borrow(is_one ? Py_True : Py_False);
}

PyMethodDef functions[] = {
    method<2, make_result>("make_result"),
    method<1, open_result>("open_result"),
    method<1, on_build_result>("build_result"),
    method<5, call_flat>("call_flat"),
    method<1, spec_key>("spec_key"),
    method<1, on_module_leaves>("module_leaves"),
    method<2, is_module>("is_module"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_jit_call(nb::module_ &module) {
    ResultBox::ready("pydag._core.Result", "What a compiled function returns: a PyDagSpec and leaves.");
    module.attr("Result") = ResultBox::type();
    checked(PyModule_AddFunctions(module.ptr(), functions));
    make_spec_key_type(module.attr("spec_key"));
    module.attr("SpecKey") = SpecKeyBox::type();
}

}  // namespace pydag
