// SPDX-License-Identifier: Apache-2.0
#include "bind.h"
#include "error.h"
#include "match.h"
#include "paths.h"
#include "shared.h"
#include "spec.h"
#include "unflatten.h"

namespace pydag {
namespace {

// A C slot must not let a C++ exception out.
template <class Result, class Body>
Result slot(Result on_error, Body body) {
    try {
        return body();
    } catch (...) {
        set_python_error();
        return on_error;
    }
}

int traverse_spec(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(reinterpret_cast<PyObject *>(Py_TYPE(self)));
    return nb::inst_ready(self) ? nb::inst_ptr<Spec>(self)->traverse(visit, arg) : 0;
}

int clear_spec(PyObject *self) {
    if (nb::inst_ready(self)) nb::inst_ptr<Spec>(self)->clear();
    return 0;
}

Py_hash_t hash_spec(PyObject *self) {
    return slot<Py_hash_t>(-1, [&] { return spec_of(self).hash(); });
}

PyObject *compare_specs(PyObject *a, PyObject *b, int operation) {
    return slot<PyObject *>(nullptr, [&]() -> PyObject * {
        const bool is_equality = operation == Py_EQ || operation == Py_NE;
        if (!is_equality || !nb::isinstance<Spec>(b)) return incref(Py_NotImplemented);
        const bool are_equal = a == b || spec_of(a).equals(spec_of(b));
        return incref(are_equal == (operation == Py_EQ) ? Py_True : Py_False);
    });
}

// A key or aux_data may hold the spec itself.
PyObject *repr_spec(PyObject *self) {
    return slot<PyObject *>(nullptr, [&]() -> PyObject * {
        const int is_running = checked(Py_ReprEnter(self));
        if (is_running) return PyUnicode_FromString("PyDagSpec(...)");
        struct Leave {
            PyObject *object;
            ~Leave() { Py_ReprLeave(object); }
        } leave{self};
        const std::string text = nb::inst_ready(self) ? nb::inst_ptr<Spec>(self)->text() : "PyDagSpec(<empty>)";
        return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
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
    if (root(spec).kind == Kind::kLeaf) return nb::none();
    return type_of(root(spec).kind, spec.structure().refs);
}

nb::object root_kind(const Spec &spec) {
    static PyObject *const kinds = import_forever("optree", "PyTreeKind");
    const Kind kind = root(spec).kind == Kind::kFields ? Kind::kCustom : root(spec).kind;
    return call(nb::handle(kinds), checked(PyLong_FromLong(static_cast<long>(kind))));
}

nb::object list_of_found(const Spec &spec, nb::handle tree) {
    Leaves found;
    match(spec.structure(), tree.ptr(), found);
    return found.take_list();
}

bool is_leaf(const Spec &spec, bool strict) {
    return strict ? root(spec).kind == Kind::kLeaf : num_children(root(spec)) == 0;
}

nb::object entries(const Spec &spec) {
    nb::object list = checked(PyList_New(0));
    for (uint32_t i = 0; i < num_children(root(spec)); ++i)
        checked(PyList_Append(list.ptr(), entry_of(root(spec).kind, spec.structure().refs, i).ptr()));
    return list;
}

void set_state(nb::handle_t<Spec> self, nb::handle state) {
    if (nb::inst_ready(self)) fail(PyExc_TypeError, "a PyDagSpec can't be changed");
    Draft draft;
    restore_state(state, draft);  // may run the keys' own code, which may come back here
    if (nb::inst_ready(self)) fail(PyExc_TypeError, "a PyDagSpec can't be changed");
    new (nb::inst_ptr<Spec>(self)) Spec(std::move(draft));
    nb::inst_mark_ready(self);
}

nb::object reduce(nb::handle_t<Spec> self) {
    static PyObject *const new_object = import_forever("copyreg", "__newobj__");
    return nb::make_tuple(nb::handle(new_object), nb::make_tuple(self.type()), state_of(spec_of(self)));
}

}  // namespace

void bind_spec(nb::module_ &module) {
    nb::class_<Spec>(module, "PyDagSpec", nb::type_slots(spec_slots), nb::is_weak_referenceable(), nb::is_final(),
                     "The structure of a DAG: its nodes, their keys and aux_data, and which of its objects are "
                     "shared.\n\nImmutable and hashable. Specs that differ in sharing are unequal.")
        .def("unflatten", [](const Spec &self, nb::handle leaves) { return unflatten(self.structure(), leaves); },
             nb::sig("def unflatten(self, leaves: Iterable[Any], /) -> Any"),
             "Build the DAG with these leaves; every shared object is built once.")
        .def("flatten_up_to", list_of_found, nb::sig("def flatten_up_to(self, tree: Any, /) -> list[Any]"),
             "What stands in `tree` at the place of each leaf. Each shared object must have one answer.")
        .def("paths", [](const Spec &self) { return leaf_paths(self.structure()); },
             nb::sig("def paths(self, /) -> list[tuple[Any, ...]]"), "The path of each leaf: to a shared one, its anchor's.")
        .def("accessors", [](const Spec &self) { return leaf_accessors(self.structure()); },
             nb::sig("def accessors(self, /) -> list[PyTreeAccessor]"), "The accessor of each leaf.")
        .def("entries", entries, nb::sig("def entries(self, /) -> list[Any]"), "The entries of the root's children.")
        .def("is_leaf", is_leaf, nb::kw_only(), nb::arg("strict") = true,
             nb::sig("def is_leaf(self, /, *, strict: bool = True) -> bool"),
             "Whether the root is a leaf; with `strict=False`, whether it has no children.")
        .def_prop_ro("num_leaves", [](const Spec &self) { return self.structure().num_leaves; }, "The number of distinct leaves.")
        .def_prop_ro("num_nodes", [](const Spec &self) { return num_distinct_nodes(self.structure()); },
                     "The number of distinct nodes, leaves included.")
        .def_prop_ro("num_children", [](const Spec &self) { return num_children(root(self)); }, "The number of the root's children.")
        .def_prop_ro("num_shared", [](const Spec &self) { return self.structure().num_shared; }, "The number of shared objects.")
        .def_prop_ro("num_paths", [](const Spec &self) { return num_paths(self.structure()); }, nb::sig("def num_paths(self, /) -> int"),
                     "The number of leaves when every path counts; may be astronomically large.")
        .def_prop_ro("none_is_leaf", [](const Spec &self) { return self.structure().none_is_leaf; }, "Whether None is a leaf.")
        .def_prop_ro("namespace", [](const Spec &self) { return nb::borrow<nb::str>(self.structure().namespace_); },
                     "The namespace of the registered classes in it, or \"\".")
        .def_prop_ro("type", root_type, nb::sig("def type(self, /) -> type | None"), "The class of the root; None for a leaf.")
        .def_prop_ro("kind", root_kind, nb::sig("def kind(self, /) -> PyTreeKind"), "The kind of the root.")
        .def("_shared", [](const Spec &self) { return shared_of(self.structure()); },
             nb::sig("def _shared(self, /) -> list[tuple[int, int, type | None, tuple[tuple[Any, ...], ...]]]"))
        .def("__len__", [](const Spec &self) { return self.structure().num_leaves; })
        .def("__sizeof__", [](nb::handle_t<Spec> self) {
            return static_cast<size_t>(Py_TYPE(self.ptr())->tp_basicsize) + spec_of(self).size_in_bytes();
        })
        .def("__copy__", [](nb::handle_t<Spec> self) { return self; }, nb::sig("def __copy__(self, /) -> PyDagSpec"))
        .def("__deepcopy__", [](nb::handle_t<Spec> self, nb::handle) { return self; }, nb::sig("def __deepcopy__(self, memo: Any, /) -> PyDagSpec"))
        .def("__getstate__", [](const Spec &self) { return state_of(self); }, nb::sig("def __getstate__(self, /) -> tuple[Any, ...]"))
        .def("__setstate__", set_state, nb::sig("def __setstate__(self, state: tuple[Any, ...], /) -> None"))
        .def("__reduce__", reduce, nb::sig("def __reduce__(self, /) -> tuple[Any, ...]"));
}

}  // namespace pydag
