// SPDX-License-Identifier: Apache-2.0
#include "rewrites/broadcast.h"
#include "base/error.h"
#include "bind/arguments.h"
#include "bind/bind.h"
#include "spec/spec.h"
#include "walks/match_prefix.h"

namespace pydag {
namespace {

// (spec, values, values in the order of the full structure, conflicts); a conflict is (path, path, answer,
// answer), or (path, path, None) where two kinds of nodes meet.
nb::object broadcast_leaves(nb::handle prefix, nb::handle leaves, nb::handle full, bool finds_all) {
    const nb::object owned = checked(PySequence_Tuple(leaves.ptr()));
    const Structure &structure = spec_of(prefix).structure();
    if (PyTuple_GET_SIZE(owned.ptr()) != static_cast<Py_ssize_t>(structure.num_leaves))
        fail(PyExc_ValueError, "The prefix has %u leaves, got %zd.", structure.num_leaves,
             PyTuple_GET_SIZE(owned.ptr()));
    Broadcast made;
    broadcast(structure, &PyTuple_GET_ITEM(owned.ptr(), 0), spec_of(full).structure(), finds_all, made);
    nb::object conflicts = checked(PyList_New(0));
    for (const Conflict &conflict : made.conflicts) {
        const nb::object first = text_object(conflict.first), other = text_object(conflict.other);
        const nb::object row = conflict.first_answer.is_valid()
                                   ? nb::make_tuple(first, other, conflict.first_answer, conflict.other_answer)
                                   : nb::make_tuple(first, other, nb::none());
        checked(PyList_Append(conflicts.ptr(), row.ptr()));
    }
    nb::object spec = finds_all ? nb::none() : make_spec(Spec(std::move(made.result)));
    return nb::make_tuple(spec, made.values.take_list(), made.values_of_full.take_list(), conflicts);
}

// The objects of `tree` that nodes of the prefix have met.
nb::object match_tree(nb::handle prefix, nb::handle tree) {
    const nb::object owned = nb::borrow(prefix);
    Leaves opened;
    match_prefix(spec_of(owned).structure(), tree, opened);
    return opened.take_list();
}

}  // namespace

void bind_broadcast(nb::module_ &module) {
    const auto given = nb::arg().none();
    module.def("broadcast", broadcast_leaves, given, given, given, given,
               nb::sig("def broadcast(prefix: PyDagSpec, leaves: list[Leaf], full: PyDagSpec, finds_all: bool, /) -> "
                       "tuple[PyDagSpec, list[Leaf], list[Leaf], list[tuple[Any, ...]]]"));
    module.def("match_prefix", match_tree, given, given,
               nb::sig("def match_prefix(prefix: PyDagSpec, tree: Dag, /) -> list[Any]"));
}

}  // namespace pydag
