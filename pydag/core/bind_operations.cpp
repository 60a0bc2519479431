// SPDX-License-Identifier: Apache-2.0
#include "bind.h"
#include "deref.h"
#include "flatten.h"
#include "map.h"
#include "match.h"
#include "paths.h"
#include "spec.h"
#include "unflatten.h"

namespace pydag {
namespace {

nb::object flatten_tree(nb::handle tree, const FlattenOptions &options) {
    Parts parts(tree, options);
    nb::object spec = parts.take_spec();
    return tuple_of(parts.take_leaves(), std::move(spec));
}

nb::object leaves_of(nb::handle tree, const FlattenOptions &options) {
    Parts parts(tree, options);
    parts.remember();
    return parts.take_leaves();
}

nb::object structure_of(nb::handle tree, const FlattenOptions &options) { return Parts(tree, options).take_spec(); }

// (paths or accessors, leaves, spec)
template <nb::object (*ways)(const Structure &)>
nb::object flatten_with(nb::handle tree, const FlattenOptions &options) {
    Parts parts(tree, options);
    nb::object leaf_ways = ways(parts.structure());
    nb::object spec = parts.take_spec();
    return tuple_of(std::move(leaf_ways), parts.take_leaves(), std::move(spec));
}

nb::object deref_tree(nb::handle tree, const FlattenOptions &options) {
    Parts parts(tree, options);
    Draft result;
    deref(parts.structure(), *options.space, result);
    return unflatten(result.view(), parts.leaves().data());
}

nb::object reref_tree(nb::handle tree, const FlattenOptions &options) {
    Parts parts(tree, options);
    Draft result;
    Leaves leaves;
    reref(parts.structure(), parts.leaves(), *options.space, result, leaves);
    return unflatten(result.view(), leaves.data());
}

// (spec, shared objects)
nb::object shared_objects_of(nb::handle tree, const FlattenOptions &options) {
    std::vector<nb::object> shared;
    Parts parts(tree, options, &shared);
    nb::object list = checked(PyList_New(0));
    for (const nb::object &object : shared) checked(PyList_Append(list.ptr(), object.ptr()));
    return checked(PyTuple_Pack(2, parts.take_spec().ptr(), list.ptr()));
}

// The functions take everything by position; the public ones, with names, defaults and
// documentation, are written in Python. They are bound by hand: that is the fastest way in, and a
// small tree is flattened in less time than a general dispatch takes.
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

// (tree, is_leaf, none_is_leaf, namespace, identity)
template <nb::object (*operation)(nb::handle, const FlattenOptions &)>
nb::object on_tree(Arguments a) {
    return operation(a[0], FlattenOptions::parse(a[1], a[2], a[3], a[4]));
}

// (function, tree, rests, is_leaf, none_is_leaf, namespace, identity)
template <Extra extra>
nb::object on_map(Arguments a) {
    return map(a[0], a[1], a[2], FlattenOptions::parse(a[3], a[4], a[5], a[6]), extra);
}

nb::object on_unflatten(Arguments a) { return unflatten(spec_of(a[0]).structure(), a[1]); }

template <size_t count, nb::object (*operation)(Arguments)>
PyMethodDef method(const char *name) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry<count, operation>)), METH_FASTCALL,
            nullptr};
}

PyMethodDef operations[] = {
    method<5, on_tree<flatten_tree>>("flatten"),
    method<5, on_tree<leaves_of>>("leaves"),
    method<5, on_tree<structure_of>>("structure"),
    method<5, on_tree<flatten_with<leaf_paths>>>("flatten_with_path"),
    method<5, on_tree<flatten_with<leaf_accessors>>>("flatten_with_accessor"),
    method<5, on_tree<copy>>("copy"),
    method<5, on_tree<deref_tree>>("deref"),
    method<5, on_tree<reref_tree>>("reref"),
    method<5, on_tree<shared_objects_of>>("shared_objects"),
    method<2, on_unflatten>("unflatten"),
    method<7, on_map<Extra::kNone>>("map"),
    method<7, on_map<Extra::kPath>>("map_with_path"),
    method<7, on_map<Extra::kAccessor>>("map_with_accessor"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_operations(nb::module_ &module) {
    checked(PyModule_AddFunctions(module.ptr(), operations));
    module.def("set_deref_classes", set_deref_classes,
               nb::sig("def set_deref_classes(anchor: type, alias: type, node: type, /) -> None"));
}

}  // namespace pydag
