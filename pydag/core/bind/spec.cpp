// SPDX-License-Identifier: Apache-2.0
#include "spec/spec.h"
#include "base/constants.h"
#include "base/error.h"
#include "base/stack_room.h"
#include "base/threads.h"
#include "bind/arguments.h"
#include "bind/bind.h"
#include "bind/operation.h"
#include "structure/compare.h"
#include "structure/listing.h"
#include "structure/paths.h"
#include "structure/prefix.h"
#include "structure/select.h"
#include "walks/walks.h"

namespace pydag {
namespace {

int traverse_spec(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(reinterpret_cast<PyObject *>(Py_TYPE(self)));
    return nb::inst_ready(self) ? nb::inst_ptr<Spec>(self)->traverse(visit, arg) : 0;
}

int clear_spec(PyObject *self) {
    if (nb::inst_ready(self)) nb::inst_ptr<Spec>(self)->clear_garbage();
    return 0;
}

Py_hash_t hash_spec(PyObject *self) {
    return slot<Py_hash_t>(-1, [&] { return spec_of(self).hash(); });
}

bool compare(const Spec &a, const Spec &b, int operation) {
    if (operation == Py_EQ || operation == Py_NE) return a.equals(b) == (operation == Py_EQ);
    const bool is_strict = operation == Py_LT || operation == Py_GT;
    const bool is_less = operation == Py_LT || operation == Py_LE;
    const Structure &first = (is_less ? a : b).structure(), &second = (is_less ? b : a).structure();
    return is_prefix(first, second, is_strict);
}

PyObject *compare_specs(PyObject *a, PyObject *b, int operation) {
    return slot<PyObject *>(nullptr, [&]() -> PyObject * {
        if (!nb::isinstance<Spec>(b)) return incref(Py_NotImplemented);
        return incref(compare(spec_of(a), spec_of(b), operation) ? Py_True : Py_False);
    });
}

// A key or aux_data may contain the spec itself: then its repr would never end.
PyObject *repr_spec(PyObject *self) {
    return slot<PyObject *>(nullptr, [&]() -> PyObject * {
        require_stack_room();
        const int is_running = checked(Py_ReprEnter(self));
        if (is_running) return PyUnicode_FromString("PyDagSpec(...)");
        struct Leave {
            PyObject *object;
            ~Leave() { Py_ReprLeave(object); }
        } leave{self};
        const std::string text = nb::inst_ready(self) ? nb::inst_ptr<Spec>(self)->text() : "PyDagSpec(<empty>)";
        return text_object(text).release().ptr();
    });
}

PyType_Slot spec_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverse_spec)},
    {Py_tp_clear, reinterpret_cast<void *>(clear_spec)},
    {Py_tp_hash, reinterpret_cast<void *>(hash_spec)},
    {Py_tp_richcompare, reinterpret_cast<void *>(compare_specs)},
    {Py_tp_repr, reinterpret_cast<void *>(repr_spec)},
    {0, nullptr},
};

Node root(const Spec &spec) { return spec.structure().nodes[0]; }

nb::object root_type(const Spec &spec) {
    if (root(spec).is_leaf()) return nb::none();
    return type_of(root(spec).kind, spec.structure().refs);
}

nb::object root_kind(const Spec &spec) { return nb::borrow(tree_kind(root(spec).kind)); }

nb::object flatten_up_to(nb::handle self, nb::handle tree) {
    Leaves found;
    match(spec_of(self).structure(), tree.ptr(), found, ClassesOf::kAnyTime);
    return found.take_list();
}

bool is_leaf(nb::handle self, nb::handle strict) {
    const Node node = root(spec_of(self));
    return flag_argument(strict) ? node.is_leaf() : num_children(node) == 0;
}

nb::object entries(const Spec &spec) {
    nb::object list = checked(PyList_New(0));
    for (uint32_t i = 0; i < num_children(root(spec)); ++i)
        checked(PyList_Append(list.ptr(), entry_of(root(spec).kind, spec.structure().refs, i).ptr()));
    return list;
}

void set_state(nb::handle_t<Spec> self, nb::handle state) {
    const auto require_empty = [=] {
        if (nb::inst_ready(self)) fail(PyExc_TypeError, "a PyDagSpec can't be changed");
    };
    {
        const Locked locked(self.ptr());
        require_empty();
    }
    require_stack_room();
    StructureBuilder builder;
    restore_state(state, builder);    // may run code of the keys, which may call this function again
    const Locked locked(self.ptr());  // one of several threads succeeds
    require_empty();
    new (nb::inst_ptr<Spec>(self)) Spec(std::move(builder));
    nb::inst_mark_ready(self);
}

nb::object reduce(nb::handle self) {
    return nb::make_tuple(nb::handle(constants.new_object), nb::make_tuple(self.type()), state_of(spec_of(self)));
}

// A method or property of a spec that has a structure. It takes the spec as an object, because nanobind's
// own conversion warns about a spec that was never restored.
template <class Body>
auto on_spec(Body body) {
    return [body](nb::handle self) { return body(spec_of(self)); };
}
template <class Body>
auto on_structure(Body body) {
    return [body](nb::handle self) { return body(spec_of(self).structure()); };
}

void bind_class(nb::module_ &module) {
    nb::class_<Spec> type(module, "PyDagSpec", nb::type_slots(spec_slots), nb::is_weak_referenceable(), nb::is_final(),
                          "The structure of a DAG: its nodes, their keys and aux_data, and which of its objects are "
                          "shared.\n\nImmutable and hashable. Specs that differ in sharing are unequal.");
    type.def(
            "unflatten",
            [](nb::handle self, nb::handle leaves) { return unflatten(spec_of(self).structure(), leaves); },
            nb::arg().none(), nb::sig("def unflatten(self, leaves: Iterable[Any], /) -> Any"),
            "Build the DAG with these leaves; every shared object is built once.")
        .def("flatten_up_to", flatten_up_to, nb::arg().none(),
             nb::sig("def flatten_up_to(self, tree: Any, /) -> list[Any]"),
             "The part of `tree` at the place of each leaf. A shared object must have one answer.")
        .def("paths", on_structure(ways_to_leaves<add_paths>), nb::sig("def paths(self, /) -> list[tuple[Any, ...]]"),
             "The path of each leaf. A shared leaf has the path of its anchor.")
        .def("accessors", on_structure(ways_to_leaves<add_accessors>),
             nb::sig("def accessors(self, /) -> list[PyTreeAccessor]"), "The accessor of each leaf.")
        .def("entries", on_spec(entries), nb::sig("def entries(self, /) -> list[Any]"),
             "The entries of the root's children.")
        .def("is_leaf", is_leaf, nb::kw_only(), nb::arg("strict").none() = true,
             nb::sig("def is_leaf(self, /, *, strict: bool = True) -> bool"),
             "Whether the root is a leaf; with `strict=False`, whether it has no children.")
        .def(
            "is_same_order",
            [](nb::handle self, nb::handle other) { return spec_of(self).is_same_order(spec_of(other)); },
            nb::arg("other").none(), nb::sig("def is_same_order(self, other: PyDagSpec, /) -> bool"),
            "Whether the dicts of two equal specs were filled in the same order, in which they are "
            "rebuilt.\n\nEquality ignores that order. For unequal specs the answer means nothing.")
        .def_prop_ro("num_leaves", on_structure([](const Structure &s) { return s.num_leaves; }),
                     "The number of distinct leaves.")
        .def_prop_ro("num_nodes", on_structure(num_distinct_nodes), "The number of distinct nodes, leaves included.")
        .def_prop_ro("num_children", on_spec([](const Spec &spec) { return num_children(root(spec)); }),
                     "The number of the root's children.")
        .def_prop_ro("num_shared", on_structure([](const Structure &s) { return s.num_shared; }),
                     "The number of shared objects.")
        .def_prop_ro("num_paths", on_structure(num_paths),
                     "The number of leaves when every path counts; may be astronomically large.")
        .def_prop_ro("none_is_leaf", on_structure([](const Structure &s) { return s.none_is_leaf; }),
                     "Whether None is a leaf.")
        .def_prop_ro("namespace", on_structure([](const Structure &s) { return nb::borrow(s.namespace_); }),
                     "The namespace of the registered classes in it, or \"\".")
        .def_prop_ro("type", on_spec(root_type), "The class of the root; None for a leaf.")
        .def_prop_ro("kind", on_spec(root_kind), "The kind of the root.")
        .def_prop_ro(
            "shared", [](nb::handle self) { return call(nb::handle(constants.spec_shared), self); },
            "The shared objects: index, kind, type and paths.")
        .def(
            "to_json", [](nb::handle self) { return call(nb::handle(constants.spec_to_json), self); },
            nb::sig("def to_json(self, /) -> str"),
            "The structure as JSON, which `from_json` reads back, in any process.\n\n"
            "Keys, aux_data and the values of meta fields may be None, bool, int, float, str, bytes, tuples of them, "
            "and registered classes, which are written by name. TypeError for anything else, with its path.")
        .def_static(
            "from_json",
            [](nb::handle text, nb::handle namespace_) {
                return call(nb::handle(constants.spec_from_json), text, namespace_);
            },
            nb::arg("text").none(), nb::arg("namespace") = nb::none(),
            nb::sig("def from_json(text: str, namespace: str | None = None) -> PyDagSpec"),
            "The structure that `to_json` wrote. Nothing is imported for it, and no code of a class "
            "runs.\n\n`unflatten` calls the functions of the classes that the text names. Registered classes are "
            "looked up in `namespace`, by default in the one that was written. ValueError names the field that is "
            "malformed, or the class that isn't registered.")
        .def(
            "_listing",
            [](nb::handle self, nb::handle record_class) { return listing(spec_of(self).structure(), record_class); },
            nb::arg("record_class") = nb::handle(as_object(&PyTuple_Type)))
        .def("_shared", on_structure(shared_of))
        .def("__len__", on_structure([](const Structure &s) { return s.num_leaves; }))
        .def("__sizeof__",
             [](nb::handle self) {
                 return static_cast<size_t>(Py_TYPE(self.ptr())->tp_basicsize) + spec_of(self).size_in_bytes();
             })
        .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
        .def(
            "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); }, nb::arg("memo").none())
        .def("__getstate__", on_spec(state_of))
        .def("_set_state", set_state, nb::arg("state").none())
        .def("__reduce__", reduce);
    // Renamed, because nanobind writes into the instance again after a `__setstate__` that it knows has returned, when
    // other threads may read it.
    type.attr("__setstate__") = type.attr("_set_state");
    nb::delattr(type, "_set_state");
}

const Operation operations[] = {
    operation_of<value_leaves>("value_leaves"),
    operation_of<module_leaves>("module_leaves"),
};

}  // namespace

void bind_spec(nb::module_ &module) {
    // A second module object gets the class that exists already.
    if (const nb::handle known = nb::type<Spec>(); known.is_valid()) module.attr("PyDagSpec") = known;
    else bind_class(module);
    module.def(
        "explain",
        [](nb::handle a, nb::handle b, bool exactly, nb::handle roots) {
            return text_object(explain(spec_of(a).structure(), spec_of(b).structure(), exactly, Roots(roots)));
        },
        nb::arg("a"), nb::arg("b"), nb::arg("exactly") = false, nb::arg("roots") = "tree");
    add_operations(module, operations);
}

}  // namespace pydag
