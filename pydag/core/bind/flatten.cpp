// SPDX-License-Identifier: Apache-2.0
#include "walks/flatten.h"
#include "bind/bind.h"
#include "bind/method.h"
#include "bind/result.h"
#include "rewrites/deref.h"
#include "spec/spec.h"
#include "structure/paths.h"
#include "walks/map.h"
#include "walks/match.h"
#include "walks/unflatten.h"

namespace pydag {
namespace {

nb::object flatten_tree(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    nb::object spec = parts.take_spec();
    return tuple_of(parts.take_leaves(), std::move(spec));
}

nb::object leaves_of(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    parts.remember();
    return parts.take_leaves();
}

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
    static PyObject *const tree = intern_forever("tree");
    if (!ResultBox::check(object)) return checked(PyObject_GetAttr(object.ptr(), tree));
    const Result &result = result_of(object);
    const nb::object spec = result.spec, leaves = result.leaves;
    return unflatten(spec_of(spec).structure(), leaves);
}

// (function, known, tree, namespace, identity). Calls the function with what `known` has for the
// structure of the tree, a tuple, and a list of the leaves; finishes what it returns.
// NotImplemented where it has nothing.
nb::object call_flat(Arguments a) {
    Flattened parts(a[2], FlattenOptions::parse(nb::none(), nb::handle(Py_False), a[3], a[4]));
    const nb::object spec = parts.take_spec();
    const nb::object first = nb::borrow(PyDict_GetItemWithError(a[1], spec.ptr()));
    if (!first.is_valid()) {
        if (PyErr_Occurred()) nb::raise_python_error();
        return nb::borrow(Py_NotImplemented);
    }
    if (!PyTuple_CheckExact(first.ptr())) fail(PyExc_TypeError, "expected a tuple, got %U.", short_repr(first).ptr());
    const nb::object leaves = parts.take_leaves();
    Buffer<PyObject *, 8> arguments;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(first.ptr()); ++i) arguments.push(PyTuple_GET_ITEM(first.ptr(), i));
    arguments.push(leaves.ptr());
    return build_result(call_array(a[0], arguments.data(), arguments.size()));
}

nb::object structure_of(nb::handle tree, const FlattenOptions &options) { return Flattened(tree, options).take_spec(); }

// (paths or accessors, leaves, spec)
template <nb::object (*ways)(const Structure &)>
nb::object flatten_with(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    nb::object leaf_ways = ways(parts.structure());
    nb::object spec = parts.take_spec();
    return tuple_of(std::move(leaf_ways), parts.take_leaves(), std::move(spec));
}

nb::object deref_tree(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    StructureBuilder result;
    deref(parts.structure(), *options.space, result);
    return unflatten(result.view(), parts.leaves().data());
}

nb::object reref_tree(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    StructureBuilder result;
    Leaves leaves;
    reref(parts.structure(), parts.leaves(), *options.space, result, leaves);
    return unflatten(result.view(), leaves.data());
}

// (spec, shared objects)
nb::object shared_objects_of(nb::handle tree, const FlattenOptions &options) {
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    const Structure structure = parts.structure();
    nb::object list = checked(PyList_New(0));
    for (uint32_t i = 0; i < structure.num_nodes; ++i)
        if (structure.nodes[i].is_anchor) checked(PyList_Append(list.ptr(), objects[i]));
    return checked(PyTuple_Pack(2, parts.take_spec().ptr(), list.ptr()));
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

nb::object on_build_result(Arguments a) { return build_result(nb::borrow(a[0])); }
nb::object on_unflatten(Arguments a) { return unflatten(spec_of(a[0]).structure(), a[1]); }

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
    method<2, make_result>("make_result"),
    method<1, open_result>("open_result"),
    method<1, on_build_result>("build_result"),
    method<5, call_flat>("call_flat"),
    method<7, on_map<Extra::kNone>>("map"),
    method<7, on_map<Extra::kPath>>("map_with_path"),
    method<7, on_map<Extra::kAccessor>>("map_with_accessor"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_operations(nb::module_ &module) {
    ResultBox::ready("pydag._core.Result", "What a compiled function returns: a PyDagSpec and leaves.");
    module.attr("Result") = ResultBox::type();
    checked(PyModule_AddFunctions(module.ptr(), operations));
    module.def("set_deref_classes", set_deref_classes,
               nb::sig("def set_deref_classes(anchor: type, alias: type, node: type, /) -> None"));
}

}  // namespace pydag
