// SPDX-License-Identifier: Apache-2.0
#include "optree_api/broadcast.h"
#include "base/error.h"
#include "base/tuples.h"
#include "bind/arguments.h"
#include "bind/bind.h"
#include "bind/operation.h"
#include "spec/spec.h"
#include "structure/prefix.h"
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
nb::object broadcasted(const Structure &prefix, nb::handle leaves, const Structure &full) {
    const nb::object owned = checked(PySequence_Tuple(leaves.ptr()));
    const Py_ssize_t count = PyTuple_GET_SIZE(owned.ptr());
    if (count != static_cast<Py_ssize_t>(prefix.num_leaves))
        fail(PyExc_ValueError, "The prefix has %zu leaves, got %zd.", size_t{prefix.num_leaves}, count);
    Broadcast made;
    broadcast(prefix, &PyTuple_GET_ITEM(owned.ptr(), 0), full, wanted, made);
    nb::object conflicts = list_of(made.conflicts);
    if (wanted == Wanted::kConflicts) return conflicts;
    if (wanted == Wanted::kLeaves) return tuple_of(made.values_of_full.take_list(), std::move(conflicts));
    // After a conflict the result isn't valid.
    nb::object spec = made.conflicts.empty() ? make_spec(Spec(std::move(made.result))) : nb::none();
    return tuple_of(std::move(spec), made.values.take_list(), std::move(conflicts));
}

// ValueError if the tree doesn't fit the prefix.
void check_prefix(const Structure &prefix, nb::handle tree) { OpenedByPrefix(prefix, tree); }

// How the root of a prefix goes with that of another structure: the name of a `Fit`.
const char *root_fit(const Structure &prefix, const Structure &other) {
    constexpr const char *kNames[] = {"fits", "kind", "count", "class", "keys", "data"};
    if (prefix.nodes[0].is_leaf()) return kNames[static_cast<size_t>(Fit::kFits)];
    if (other.nodes[0].is_leaf()) return kNames[static_cast<size_t>(Fit::kOtherKind)];
    std::vector<uint32_t> order;
    return kNames[static_cast<size_t>(fit_node(prefix.nodes[0], prefix.refs, other.nodes[0], other.refs, order))];
}

// As `structure`; the predicate isn't asked about nodes of the tree where the prefix has nodes.
nb::object structure_below(const Structure &prefix, nb::handle tree, FlattenOptions options) {
    if (!options.is_leaf.is_valid()) return Flattened(tree, options).take_spec();
    OpenedByPrefix opened(prefix, tree);
    options.prefix = &opened;
    return Flattened(tree, options).take_spec();
}

const Operation operations[] = {
    operation_of<broadcasted<Wanted::kTree>>("broadcast_tree"),
    operation_of<broadcasted<Wanted::kLeaves>>("broadcast_leaves"),
    operation_of<broadcasted<Wanted::kConflicts>>("broadcast_conflicts"),
    operation_of<check_prefix>("check_prefix"),
    operation_of<root_fit>("root_fit"),
    operation_of<structure_below>("structure_below"),
};

}  // namespace

void bind_broadcast(nb::module_ &module) { add_operations(module, operations); }

}  // namespace pydag
