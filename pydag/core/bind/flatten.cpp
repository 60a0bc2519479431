// SPDX-License-Identifier: Apache-2.0
#include "walks/flatten.h"
#include "base/constants.h"
#include "base/tuples.h"
#include "bind/bind.h"
#include "bind/method.h"
#include "bind/public_function.h"
#include "rewrites/deref.h"
#include "spec/spec.h"
#include "structure/paths.h"
#include "walks/all_paths.h"
#include "walks/copy.h"
#include "walks/iterate.h"
#include "walks/map.h"
#include "walks/one_level.h"
#include "walks/shared_objects.h"
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

// (tree, namespace, identity, root): as `flatten`, with a name for the tree in messages.
nb::object flatten_at(Arguments a) {
    FlattenOptions options = FlattenOptions::parse(nb::none(), nb::handle(Py_False), a[1], a[2]);
    options.root = nb::borrow(a[3]);
    if (!PyUnicode_Check(a[3]) && !PyTuple_Check(a[3]))
        fail(PyExc_TypeError, "the root must be a str or a tuple, got %U.", short_repr(a[3]).ptr());
    return flatten_tree(a[0], options);
}

nb::object structure_of(nb::handle tree, const FlattenOptions &options) { return Flattened(tree, options).take_spec(); }

nb::object with_ways(nb::object ways, Flattened &parts) {
    nb::object spec = parts.take_spec();
    return tuple_of(std::move(ways), parts.take_leaves(), std::move(spec));
}

// (paths, leaves, spec)
nb::object flatten_with_paths(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    const nb::object kept = parts.kept_paths();
    if (!kept.is_valid()) return with_ways(ways_to_leaves<add_paths>(parts.structure()), parts);
    return with_ways(checked(PySequence_List(kept.ptr())), parts);
}

// (accessors, leaves, spec)
nb::object flatten_with_accessors(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    return with_ways(ways_to_leaves<add_accessors>(parts.structure()), parts);
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

// (function, tree, rests, select, is_leaf, none_is_leaf, namespace, identity)
template <Extra extra>
nb::object on_map_where(Arguments a) {
    return map_where(a[0], a[1], a[2], a[3], FlattenOptions::parse(a[4], a[5], a[6], a[7]), extra);
}

template <Extra extra>
nb::object on_for_each(Arguments a) {
    for_each(a[0], a[1], a[2], a[3], FlattenOptions::parse(a[4], a[5], a[6], a[7]), extra);
    return nb::none();
}

nb::object iterate(Arguments a) { return make_iterator(a[0], FlattenOptions::parse(a[1], a[2], a[3], a[4])); }

// (tree or iterable, is_leaf, none_is_leaf, namespace)
template <bool (*question)(nb::handle, const FlattenOptions &)>
nb::object on_question(Arguments a) {
    return nb::bool_(question(a[0], FlattenOptions::parse(a[1], a[2], a[3], nb::handle(constants.all))));
}

// (node, none_is_leaf, namespace)
nb::object on_one_level(Arguments a) {
    return open_one_level(a[0], FlattenOptions::parse(nb::none(), a[1], a[2], nb::handle(constants.all)));
}

nb::object on_all_paths(Arguments a) { return all_paths(spec_of(a[0]).structure()); }

nb::object on_unflatten(Arguments a) { return unflatten(spec_of(a[0]).structure(), a[1]); }

PyMethodDef operations[] = {
    method<5, on_tree<flatten_tree>>("flatten"),
    method<4, flatten_at>("flatten_at"),
    method<5, on_tree<leaves_of>>("leaves"),
    method<5, on_tree<structure_of>>("structure"),
    method<5, on_tree<flatten_with_paths>>("flatten_with_path"),
    method<5, on_tree<flatten_with_accessors>>("flatten_with_accessor"),
    method<5, on_tree<copy>>("copy"),
    method<5, on_tree<deref>>("deref"),
    method<5, on_tree<reref>>("reref"),
    method<5, on_tree<shared_objects_of>>("shared_objects"),
    method<2, on_unflatten>("unflatten"),
    method<7, on_map<Extra::kNone>>("map"),
    method<7, on_map<Extra::kPath>>("map_with_path"),
    method<7, on_map<Extra::kAccessor>>("map_with_accessor"),
    method<8, on_map_where<Extra::kNone>>("map_where"),
    method<8, on_map_where<Extra::kPath>>("map_with_path_where"),
    method<8, on_map_where<Extra::kAccessor>>("map_with_accessor_where"),
    method<8, on_for_each<Extra::kNone>>("for_each"),
    method<8, on_for_each<Extra::kPath>>("for_each_with_path"),
    method<8, on_for_each<Extra::kAccessor>>("for_each_with_accessor"),
    method<5, iterate>("iterate"),
    method<4, on_question<is_leaf>>("is_leaf"),
    method<4, on_question<are_leaves>>("are_leaves"),
    method<3, on_one_level>("open_one_level"),
    method<1, on_all_paths>("all_paths"),
    {nullptr, nullptr, 0, nullptr},
};

const Publishable publishables[] = {
    publishable<5, on_tree<flatten_tree>>("flatten"),
    publishable<5, on_tree<leaves_of>>("leaves"),
    publishable<5, on_tree<structure_of>>("structure"),
    publishable<5, on_tree<flatten_with_paths>>("flatten_with_path"),
    publishable<5, on_tree<flatten_with_accessors>>("flatten_with_accessor"),
    publishable<5, on_tree<copy>>("copy"),
    publishable<2, on_unflatten>("unflatten"),
    publishable<7, on_map<Extra::kNone>>("map"),
    publishable<7, on_map<Extra::kPath>>("map_with_path"),
    publishable<7, on_map<Extra::kAccessor>>("map_with_accessor"),
    publishable<5, iterate>("iterate"),
    publishable<4, on_question<is_leaf>>("is_leaf"),
    publishable<4, on_question<are_leaves>>("are_leaves"),
};

}  // namespace

void bind_operations(nb::module_ &module) {
    checked(PyModule_AddFunctions(module.ptr(), operations));
    add_publishables(publishables, std::size(publishables));
    make_iterator_type();
    module.def("set_deref_classes", set_deref_classes,
               nb::sig("def set_deref_classes(anchor: type, alias: type, node: type, /) -> None"));
}

}  // namespace pydag
