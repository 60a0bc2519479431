// SPDX-License-Identifier: Apache-2.0
#include "bind/bind.h"
#include "rewrites/replace.h"
#include "rewrites/retie.h"
#include "rewrites/tie.h"
#include "walks/update.h"

namespace pydag {
namespace {

FlattenOptions options_of(nb::handle is_leaf, nb::handle none_is_leaf, nb::handle namespace_, nb::handle identity) {
    return FlattenOptions::parse(is_leaf, none_is_leaf, namespace_, identity);
}

nb::object tie_tree(nb::handle tree, nb::handle paths, nb::handle is_leaf, nb::handle none_is_leaf,
                    nb::handle namespace_, nb::handle identity) {
    return tie(tree, paths, options_of(is_leaf, none_is_leaf, namespace_, identity));
}

nb::object untie_tree(nb::handle tree, nb::handle paths, nb::handle copy_leaf, nb::handle is_leaf,
                      nb::handle none_is_leaf, nb::handle namespace_, nb::handle identity) {
    return untie(tree, paths, copy_leaf, options_of(is_leaf, none_is_leaf, namespace_, identity));
}

nb::object retie_tree(nb::handle spec, nb::handle tree, nb::handle are_equal, nb::handle combine) {
    return retie(spec, tree, are_equal, combine.is_none() ? nb::handle() : combine);
}

nb::object replace_in_tree(nb::handle tree, nb::handle old_object, nb::handle new_object, nb::handle is_leaf,
                           nb::handle none_is_leaf, nb::handle namespace_, nb::handle identity) {
    return replace(tree, old_object, new_object, options_of(is_leaf, none_is_leaf, namespace_, identity));
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
    module.def("replace", replace_in_tree, given, given, given, given, given, given, given,
               nb::sig("def replace(tree: Dag, old: object, new: object, is_leaf: IsLeaf | None, none_is_leaf: bool, "
                       "namespace: str, identity: Identity, /) -> Dag"));
    module.def("update", update_tree, given, given, given, given, given, given,
               nb::sig("def update(target: Dag, source: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, "
                       "namespace: str, identity: Identity, /) -> None"));
}

}  // namespace pydag
