// SPDX-License-Identifier: Apache-2.0
#include "rewrites/broadcast.h"
#include "base/error.h"
#include "base/tuples.h"
#include "bind/arguments.h"
#include "bind/bind.h"
#include "spec/spec.h"
#include "walks/flatten.h"
#include "walks/opened_by_prefix.h"

namespace pydag {
namespace {

// For each conflict (path, path, answer, answer), or (path, path) where nodes of two kinds meet.
nb::object list_of(const std::vector<Conflict> &conflicts) {
    nb::object list = checked(PyList_New(0));
    for (const Conflict &conflict : conflicts) {
        const nb::object first = text_object(conflict.first), other = text_object(conflict.other);
        const nb::object row = conflict.first_answer.is_valid()
                                   ? nb::make_tuple(first, other, conflict.first_answer, conflict.other_answer)
                                   : nb::make_tuple(first, other);
        checked(PyList_Append(list.ptr(), row.ptr()));
    }
    return list;
}

template <Wanted wanted>
nb::object broadcasted(nb::handle prefix, nb::handle leaves, nb::handle full) {
    const nb::object owned = checked(PySequence_Tuple(leaves.ptr()));
    const Structure &structure = spec_of(prefix).structure();
    const Py_ssize_t count = PyTuple_GET_SIZE(owned.ptr());
    if (count != static_cast<Py_ssize_t>(structure.num_leaves))
        fail(PyExc_ValueError, "The prefix has %zu leaves, got %zd.", size_t{structure.num_leaves}, count);
    Broadcast made;
    broadcast(structure, &PyTuple_GET_ITEM(owned.ptr(), 0), spec_of(full).structure(), wanted, made);
    nb::object conflicts = list_of(made.conflicts);
    if (wanted == Wanted::kConflicts) return conflicts;
    if (wanted == Wanted::kLeaves) return tuple_of(made.values_of_full.take_list(), std::move(conflicts));
    // What a conflict ended isn't complete.
    nb::object spec = made.conflicts.empty() ? make_spec(Spec(std::move(made.result))) : nb::none();
    return tuple_of(std::move(spec), made.values.take_list(), std::move(conflicts));
}

// ValueError where the tree doesn't fit the prefix.
void check_prefix(nb::handle prefix, nb::handle tree) {
    const nb::object owned = nb::borrow(prefix);
    OpenedByPrefix(spec_of(owned).structure(), tree);
}

nb::object structure_below(nb::handle prefix, nb::handle tree, nb::handle is_leaf, nb::handle none_is_leaf,
                           nb::handle namespace_, nb::handle identity) {
    const nb::object owned = nb::borrow(prefix);
    FlattenOptions options = FlattenOptions::parse(is_leaf, none_is_leaf, namespace_, identity);
    if (!options.is_leaf.is_valid()) return Flattened(tree, options).take_spec();
    OpenedByPrefix opened(spec_of(owned).structure(), tree);
    options.prefix = &opened;
    return Flattened(tree, options).take_spec();
}

}  // namespace

void bind_broadcast(nb::module_ &module) {
    const auto given = nb::arg().none();
    module.def("broadcast_tree", broadcasted<Wanted::kTree>, given, given, given,
               nb::sig("def broadcast_tree(prefix: PyDagSpec, leaves: list[Leaf], full: PyDagSpec, /) -> "
                       "tuple[PyDagSpec, list[Leaf], list[tuple[Any, ...]]]"));
    module.def("broadcast_leaves", broadcasted<Wanted::kLeaves>, given, given, given,
               nb::sig("def broadcast_leaves(prefix: PyDagSpec, leaves: list[Leaf], full: PyDagSpec, /) -> "
                       "tuple[list[Leaf], list[tuple[Any, ...]]]"));
    module.def("broadcast_conflicts", broadcasted<Wanted::kConflicts>, given, given, given,
               nb::sig("def broadcast_conflicts(prefix: PyDagSpec, leaves: list[Leaf], full: PyDagSpec, /) -> "
                       "list[tuple[Any, ...]]"));
    module.def("check_prefix", check_prefix, given, given,
               nb::sig("def check_prefix(prefix: PyDagSpec, tree: Dag, /) -> None"));
    // As `structure`; the predicate isn't asked about what the nodes of the prefix open.
    module.def("structure_below", structure_below, given, given, given, given, given, given,
               nb::sig("def structure_below(prefix: PyDagSpec, tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, "
                       "namespace: str, identity: Identity, /) -> PyDagSpec"));
}

}  // namespace pydag
