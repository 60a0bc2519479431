// SPDX-License-Identifier: Apache-2.0
#include "base/tuples.h"
#include "bind/bind.h"
#include "bind/operation.h"
#include "rewrites/rewrites.h"
#include "structure/paths.h"
#include "walks/walks.h"

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

// As `flatten`, with a name for the tree in messages, and with the names of all children.
nb::object flatten_at(nb::handle tree, nb::handle root, FlattenOptions options) {
    options.roots = Roots(root);
    return flatten_tree(tree, options);
}

// The same with the object at each position of the structure, those of leaves and aliases, too.
nb::object flatten_with_objects(nb::handle tree, nb::handle root, FlattenOptions options) {
    options.roots = Roots(root);
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    nb::object spec = parts.take_spec();
    return tuple_of(parts.take_leaves(), std::move(spec), objects.take_list());
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

template <Extra extra>
nb::object map_with(nb::handle function, nb::handle tree, nb::handle rests, Select select,
                    const FlattenOptions &options) {
    return map(function, tree, rests, select, options, extra);
}

template <Extra extra>
void for_each_with(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select,
                   const FlattenOptions &options) {
    for_each(function, tree, rests, select, options, extra);
}

nb::object retie_tree(nb::handle spec, nb::handle tree, nb::handle are_equal, nb::handle combine) {
    return retie(spec, tree, are_equal, combine.is_none() ? nb::handle() : combine);
}

// `down`: None where there is no context.
nb::object fold_tree(nb::handle function, nb::handle tree, nb::handle down, nb::handle init,
                     const FlattenOptions &options) {
    if (!down.is_none()) return fold_with_context(function, tree, down, init, options);
    if (!init.is_none())
        fail(PyExc_TypeError, "init is the context of the root: it needs down, which gives that of the others");
    return fold(function, tree, options);
}

nb::object path_texts(const Structure &structure, nb::handle roots) {
    Ways ways;
    add_texts(structure, roots, ways);
    return ways.take_list();
}

const Operation operations[] = {
    nameless<flatten_tree>("flatten"),
    operation_of<flatten_at>("flatten_at"),
    operation_of<flatten_with_objects>("flatten_with_objects"),
    nameless<leaves_of>("leaves"),
    nameless<structure_of>("structure"),
    operation_of<flatten_with_paths>("flatten_with_path"),
    operation_of<flatten_with_accessors>("flatten_with_accessor"),
    nameless<copy>("copy"),
    nameless<deep_copy>("deep_copy"),
    operation_of<deref>("deref"),
    operation_of<reref>("reref"),
    operation_of<set_deref_classes>("set_deref_classes"),
    operation_of<shared_objects_of>("shared_objects"),
    operation_of<static_cast<nb::object (*)(const Structure &, nb::handle)>(unflatten)>("unflatten"),
    nameless<map_with<Extra::kNone>>("map"),
    operation_of<map_with<Extra::kPath>>("map_with_path"),
    operation_of<map_with<Extra::kAccessor>>("map_with_accessor"),
    operation_of<map_with<Extra::kNone>>("map_where"),
    operation_of<for_each_with<Extra::kNone>>("for_each"),
    operation_of<for_each_with<Extra::kPath>>("for_each_with_path"),
    operation_of<for_each_with<Extra::kAccessor>>("for_each_with_accessor"),
    nameless<make_iterator>("iterate"),
    operation_of<static_cast<bool (*)(nb::handle, const FlattenOptions &)>(is_leaf)>("is_leaf"),
    operation_of<are_leaves>("are_leaves"),
    operation_of<open_one_level>("open_one_level"),
    operation_of<all_paths>("all_paths"),
    operation_of<path_texts>("path_texts"),
    operation_of<tie>("tie"),
    operation_of<untie>("untie"),
    operation_of<retie_tree>("retie"),
    operation_of<replace>("replace"),
    operation_of<update>("update"),
    nameless<fold_tree>("fold"),
    nameless<rewrite>("rewrite"),
    nameless<intern>("intern"),
};

}  // namespace

void bind_operations(nb::module_ &module) {
    add_operations(module, operations);
    make_iterator_type();
}

}  // namespace pydag
