// SPDX-License-Identifier: Apache-2.0
#include "optree_api/broadcast.h"
#include "base/error.h"
#include "base/tuples.h"
#include "bind/arguments.h"
#include "bind/bind.h"
#include "bind/operation.h"
#include "spec/spec.h"
#include "structure/node_fit.h"
#include "walks/flatten.h"
#include "walks/opened_by_prefix.h"

namespace pydag {
namespace {

// For each conflict (path, path, answer, answer), or (path, path) if the prefix has nodes of two kinds there.
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
    // After a conflict the result isn't valid.
    nb::object spec = made.conflicts.empty() ? make_spec(Spec(std::move(made.result))) : nb::none();
    return tuple_of(std::move(spec), made.values.take_list(), std::move(conflicts));
}

// ValueError if the tree doesn't fit the prefix.
void check_prefix(nb::handle prefix, nb::handle tree) {
    const nb::object owned = nb::borrow(prefix);
    OpenedByPrefix(spec_of(owned).structure(), tree);
}

// How the root of a prefix goes with that of another structure: the name of a `Fit`.
const char *root_fit(nb::handle prefix, nb::handle other) {
    constexpr const char *kNames[] = {"fits", "kind", "count", "class", "keys", "data"};
    const nb::object owned = nb::borrow(prefix), owned_other = nb::borrow(other);
    const Structure &a = spec_of(owned).structure(), &b = spec_of(owned_other).structure();
    if (a.nodes[0].is_leaf()) return kNames[static_cast<size_t>(Fit::kFits)];
    if (b.nodes[0].is_leaf()) return kNames[static_cast<size_t>(Fit::kOtherKind)];
    std::vector<uint32_t> order;
    return kNames[static_cast<size_t>(fit_node(a.nodes[0], a.refs, b.nodes[0], b.refs, order))];
}

// (prefix, tree): as `structure`; the predicate isn't asked about nodes of the tree where the prefix has nodes.
nb::object structure_below(Arguments a, const FlattenOptions &given) {
    const nb::object prefix = nb::borrow(a[0]);
    if (!given.is_leaf.is_valid()) return Flattened(a[1], given).take_spec();
    OpenedByPrefix opened(spec_of(prefix).structure(), a[1]);
    FlattenOptions options = given;
    options.prefix = &opened;
    return Flattened(a[1], options).take_spec();
}

const Operation operations[] = {operation_of<2, structure_below>("structure_below")};

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
    module.def("root_fit", root_fit, given, given,
               nb::sig("def root_fit(prefix: PyDagSpec, other: PyDagSpec, /) -> str"));
    add_operations(module, operations, std::size(operations));
}

}  // namespace pydag
