// SPDX-License-Identifier: Apache-2.0
#include "bind/bind.h"
#include "rewrites/retie.h"
#include "rewrites/tie.h"
#include "spec/spec.h"
#include "walks/flatten.h"
#include "walks/unflatten.h"
#include "walks/update.h"

namespace pydag {
namespace {

FlattenOptions options_of(nb::handle is_leaf, nb::handle none_is_leaf, nb::handle namespace_, nb::handle identity) {
    return FlattenOptions::parse(is_leaf, none_is_leaf, namespace_, identity);
}

nb::object tie_tree(nb::handle tree, nb::handle paths, nb::handle is_leaf, nb::handle none_is_leaf,
                    nb::handle namespace_, nb::handle identity) {
    const FlattenOptions options = options_of(is_leaf, none_is_leaf, namespace_, identity);
    Flattened parts(tree, options);
    StructureBuilder result;
    Leaves leaves;
    tie(parts.structure(), parts.leaves(), options, paths, result, leaves);
    return unflatten(result.view(), leaves.data());
}

nb::object untie_tree(nb::handle tree, nb::handle paths, nb::handle copy_leaf, nb::handle is_leaf,
                      nb::handle none_is_leaf, nb::handle namespace_, nb::handle identity) {
    const FlattenOptions options = options_of(is_leaf, none_is_leaf, namespace_, identity);
    Flattened parts(tree, options);
    StructureBuilder result;
    Leaves leaves;
    untie(parts.structure(), parts.leaves(), options, paths, copy_leaf, result, leaves);
    return unflatten(result.view(), leaves.data());
}

nb::object retie_tree(nb::handle spec, nb::handle tree, nb::handle are_equal, nb::handle combine) {
    const nb::object owned = nb::borrow(spec);
    const Structure &structure = spec_of(owned).structure();
    Leaves leaves;
    retie(structure, tree.ptr(), are_equal, combine.is_none() ? nb::handle() : combine, leaves);
    return unflatten(structure, leaves.data());
}

nb::object replace(nb::handle tree, nb::handle old_object, nb::handle new_object, nb::handle is_leaf,
                   nb::handle none_is_leaf, nb::handle namespace_, nb::handle identity) {
    FlattenOptions options = options_of(is_leaf, none_is_leaf, namespace_, identity);
    if (options.space->find_class_of(old_object.ptr()).identity == kNoIdentity)
        fail(PyExc_ValueError, "%U is a value and has no identity, so no place is its own; change it by its path",
             short_repr(old_object).ptr());
    options.whole = old_object;
    Flattened parts(tree, options);
    Leaves &leaves = parts.leaves();
    bool is_found = false;
    for (size_t i = 0; i < leaves.size(); ++i) {
        if (leaves[i] != old_object.ptr()) continue;
        is_found = true;
        nb::steal(std::exchange(leaves[i], nb::borrow(new_object).release().ptr())).reset();
    }
    if (!is_found)
        fail(PyExc_ValueError, "the tree doesn't hold the object that is to be replaced: %U",
             short_repr(old_object).ptr());
    return unflatten(parts.structure(), leaves.data());
}

void update_tree(nb::handle target, nb::handle source, nb::handle is_leaf, nb::handle none_is_leaf,
                 nb::handle namespace_, nb::handle identity) {
    update(target, source, options_of(is_leaf, none_is_leaf, namespace_, identity));
}

}  // namespace

void bind_surgery(nb::module_ &module) {
    const auto given = nb::arg().none();
    module.def("tie", tie_tree, given, given, given, given, given, given,
               nb::sig("def tie(tree: Any, paths: tuple[Path, ...], is_leaf: IsLeaf | None, none_is_leaf: bool, "
                       "namespace: str, identity: Identity, /) -> Any"));
    module.def(
        "untie", untie_tree, given, given, given, given, given, given, given,
        nb::sig(
            "def untie(tree: Any, paths: tuple[Path, ...], copy_leaf: Callable[[Leaf], Leaf], is_leaf: IsLeaf | None, "
            "none_is_leaf: bool, namespace: str, identity: Identity, /) -> Any"));
    module.def("retie", retie_tree, given, given, given, given,
               nb::sig("def retie(spec: PyDagSpec, tree: Dag, are_equal: Callable[[Leaf, Leaf], bool], "
                       "combine: Callable[[Leaf, Leaf], Leaf] | None, /) -> Dag"));
    module.def("replace", replace, given, given, given, given, given, given, given,
               nb::sig("def replace(tree: Dag, old: object, new: object, is_leaf: IsLeaf | None, none_is_leaf: bool, "
                       "namespace: str, identity: Identity, /) -> Dag"));
    module.def("update", update_tree, given, given, given, given, given, given,
               nb::sig("def update(target: Dag, source: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, "
                       "namespace: str, identity: Identity, /) -> None"));
}

}  // namespace pydag
