// SPDX-License-Identifier: Apache-2.0
#include "walks/flatten.h"
#include "base/constants.h"
#include "base/tuples.h"
#include "bind/bind.h"
#include "bind/operation.h"
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

// (tree, root): as `flatten`, with a name for the tree in messages, and with the names of all children.
nb::object flatten_at(Arguments a, FlattenOptions options) {
    options.roots = Roots(a[1]);
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

// (tree)
template <nb::object (*operation)(nb::handle, const FlattenOptions &)>
nb::object on_tree(Arguments a, const FlattenOptions &options) {
    return operation(a[0], options);
}

// (tree), where nobody wants paths
template <nb::object (*operation)(nb::handle, const FlattenOptions &)>
nb::object on_nameless_tree(Arguments a, FlattenOptions options) {
    options.asks_names = false;
    return operation(a[0], options);
}

// (function, tree, rests)
template <Extra extra>
nb::object on_map(Arguments a, FlattenOptions options) {
    options.asks_names = extra != Extra::kNone;
    return map(a[0], a[1], a[2], options, extra);
}

// (function, tree, rests, select)
template <Extra extra>
nb::object on_map_where(Arguments a, const FlattenOptions &options) {
    return map_where(a[0], a[1], a[2], a[3], options, extra);
}

template <Extra extra>
nb::object on_for_each(Arguments a, const FlattenOptions &options) {
    for_each(a[0], a[1], a[2], a[3], options, extra);
    return nb::none();
}

// (tree or iterable)
template <bool (*question)(nb::handle, const FlattenOptions &)>
nb::object on_question(Arguments a, const FlattenOptions &options) {
    return nb::bool_(question(a[0], options));
}

// (spec)
nb::object on_path_texts(Arguments a) {
    Ways ways;
    add_texts(spec_of(a[0]).structure(), a[1], ways);
    return ways.take_list();
}
nb::object on_all_paths(Arguments a) { return all_paths(spec_of(a[0]).structure()); }

// (spec, leaves)
nb::object on_unflatten(Arguments a) { return unflatten(spec_of(a[0]).structure(), a[1]); }

const Operation operations[] = {
    operation_of<1, on_nameless_tree<flatten_tree>>("flatten"),
    operation_of<2, flatten_at>("flatten_at"),
    operation_of<1, on_nameless_tree<leaves_of>>("leaves"),
    operation_of<1, on_nameless_tree<structure_of>>("structure"),
    operation_of<1, on_tree<flatten_with_paths>>("flatten_with_path"),
    operation_of<1, on_tree<flatten_with_accessors>>("flatten_with_accessor"),
    operation_of<1, on_nameless_tree<copy>>("copy"),
    operation_of<1, on_tree<deref>>("deref"),
    operation_of<1, on_tree<reref>>("reref"),
    operation_of<1, on_tree<shared_objects_of>>("shared_objects"),
    operation_of<2, on_unflatten>("unflatten"),
    operation_of<3, on_map<Extra::kNone>>("map"),
    operation_of<3, on_map<Extra::kPath>>("map_with_path"),
    operation_of<3, on_map<Extra::kAccessor>>("map_with_accessor"),
    operation_of<4, on_map_where<Extra::kNone>>("map_where"),
    operation_of<4, on_map_where<Extra::kPath>>("map_with_path_where"),
    operation_of<4, on_map_where<Extra::kAccessor>>("map_with_accessor_where"),
    operation_of<4, on_for_each<Extra::kNone>>("for_each"),
    operation_of<4, on_for_each<Extra::kPath>>("for_each_with_path"),
    operation_of<4, on_for_each<Extra::kAccessor>>("for_each_with_accessor"),
    operation_of<1, on_nameless_tree<make_iterator>>("iterate"),
    operation_of<1, on_question<is_leaf>>("is_leaf"),
    operation_of<1, on_question<are_leaves>>("are_leaves"),
    operation_of<1, on_tree<open_one_level>>("open_one_level"),
    operation_of<1, on_all_paths>("all_paths"),
    operation_of<2, on_path_texts>("path_texts"),
};

}  // namespace

void bind_operations(nb::module_ &module) {
    add_operations(module, operations, std::size(operations));
    make_iterator_type();
    module.def("set_deref_classes", set_deref_classes,
               nb::sig("def set_deref_classes(anchor: type, alias: type, node: type, /) -> None"));
}

}  // namespace pydag
