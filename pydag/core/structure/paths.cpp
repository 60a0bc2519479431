// SPDX-License-Identifier: Apache-2.0
#include "structure/paths.h"

#include "base/constants.h"
#include "base/interrupt.h"
#include "base/tuples.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "types/classes.h"
#include "types/registry.h"

namespace pydag {
namespace {

// Calls `enter(child_of)` before each child of a container, `leave()` behind it, and `visit(position)` at
// every node.
template <class Enter, class Leave, class Visit>
void walk_entries(const Structure &structure, Enter enter, Leave leave, Visit visit) {
    Nesting<ChildOf> around;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        if (!around.empty()) enter(around.innermost().pass());
        visit(at.position());
        around.add({node.kind, at.refs()}, num_children(node), [&](const ChildOf &) {
            if (!around.empty()) leave();
        });
    }
}

// Adds one object per leaf: `finish` makes it from a tuple of `begin`, if there is one, and of the results of
// `make(child_of, is_first)` for each step. Both may run Python code, which can't find these objects.
template <class Make, class Finish>
void collect(const Structure &structure, Ways &ways, nb::object begin, Make make, Finish finish) {
    RefBuffer<24> way;
    if (begin.is_valid()) way.push_new(std::move(begin));
    walk_entries(
        structure, [&](ChildOf at) { way.push_new(make(at, way.empty())); }, [&] { way.drop_to(way.size() - 1); },
        [&](uint32_t i) {
            if (structure.nodes[i].is_leaf()) ways.push_new(finish(tuple_of(way.data(), way.size())));
        });
}

nb::object entry_type_of(Kind kind, PyObject *const *refs) {
    if (is_registered(kind)) return path_entry_type_of(CustomRefs{refs}.registration_box());
    const Entries entries = traits(kind).entries;
    if (entries == Entries::kTupleFields) return nb::borrow(constants.namedtuple_entry);
    if (entries == Entries::kStructFields) return nb::borrow(constants.structseq_entry);
    return nb::borrow(entries == Entries::kKeys ? constants.mapping_entry : constants.sequence_entry);
}

nb::object accessor_entry(Kind kind, PyObject *const *refs, uint32_t child) {
    const nb::object entry_type = entry_type_of(kind, refs);
    return call(entry_type, entry_of(kind, refs, child), type_of(kind, refs), tree_kind(kind));
}

// A step as text, or, if only the class of the entry knows how it is written, the entry itself.
nb::object text_of_step(Kind kind, PyObject *const *refs, uint32_t child) {
    const Entries entries = traits(kind).entries;
    if (entries == Entries::kIndex) return checked(PyUnicode_FromFormat("[%u]", unsigned{child}));
    if (entries == Entries::kKeys) return checked(PyUnicode_FromFormat("[%R]", entry_of(kind, refs, child).ptr()));
    if (entries == Entries::kNames && entry_type_of(kind, refs).is(constants.attribute_entry)) {
        const nb::object name = entry_of(kind, refs, child);
        if (PyUnicode_CheckExact(name.ptr()) && PyUnicode_IsIdentifier(name.ptr()))
            return checked(PyUnicode_FromFormat(".%U", name.ptr()));
    }
    return accessor_entry(kind, refs, child);
}

// The text of a path, from the texts and entries of its steps.
nb::object joined(nb::handle way) {
    const nb::object nothing = checked(PyUnicode_FromString(""));
    const auto part = [&](Py_ssize_t begin, Py_ssize_t end) {
        return checked(PyUnicode_Join(nothing.ptr(), checked(PyTuple_GetSlice(way.ptr(), begin, end)).ptr()));
    };
    const Py_ssize_t count = PyTuple_GET_SIZE(way.ptr());
    nb::object text = nothing;
    Py_ssize_t begin = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *const step = PyTuple_GET_ITEM(way.ptr(), i);
        if (PyUnicode_CheckExact(step)) continue;
        text = checked(PyUnicode_Concat(text.ptr(), part(begin, i).ptr()));
        text = call(checked(PyObject_GetAttrString(step, "codify")), text);
        if (!PyUnicode_CheckExact(text.ptr())) fail(PyExc_TypeError, "codify() returns no text.");
        begin = i + 1;
    }
    return checked(PyUnicode_Concat(text.ptr(), part(begin, count).ptr()));
}

}  // namespace

nb::object entry_of(Kind kind, PyObject *const *refs, uint32_t child) {
    if (has_keys(kind)) return nb::borrow(node_keys(kind, refs).key(child));
    if (traits(kind).entries == Entries::kCustom) {
        PyObject *const entries = CustomRefs{refs}.entries();
        if (entries != Py_None) return nb::borrow(PyTuple_GET_ITEM(entries, child));
    }
    return checked(PyLong_FromSize_t(child));
}

nb::handle tree_kind(Kind kind) { return constants.tree_kinds[traits(kind).tree_kind]; }

nb::object type_of(Kind kind, PyObject *const *refs) {
    if (is_registered(kind)) return node_registration(refs).type;
    if (has_many_classes(kind)) return nb::borrow(TupleClassRefs{refs}.type());
    return nb::borrow(as_object(builtin_class(kind)));
}

nb::object fields_of(Kind kind, PyObject *cls) {
    if (traits(kind).entries == Entries::kStructFields) return names_of_struct_sequence(cls);
    return checked(PySequence_Tuple(checked(PyObject_GetAttr(cls, constants.fields)).ptr()));
}

Step step_of(Kind kind, PyObject *const *refs, uint32_t child) {
    nb::object entry = entry_of(kind, refs, child);
    const Entries entries = traits(kind).entries;
    if (entries == Entries::kNames) return {std::move(entry), true};
    if (entries == Entries::kCustom) {
        const nb::object entry_type = path_entry_type_of(CustomRefs{refs}.registration_box());
        const bool is_attribute = PyType_Check(entry_type.ptr()) &&
                                  PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(entry_type.ptr()),
                                                   reinterpret_cast<PyTypeObject *>(constants.attribute_entry));
        return {std::move(entry), is_attribute};
    }
    if (entries != Entries::kTupleFields && entries != Entries::kStructFields) return {std::move(entry), false};
    // The class may have changed its `_fields` since, or have no name for this item: then the index stands.
    nb::object fields;
    try {
        fields = fields_of(kind, TupleClassRefs{refs}.type());
    } catch (nb::python_error &) {
        return {std::move(entry), false};
    }
    PyObject *const name = item_or_null(fields, child);
    const bool has_name =
        name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, PyStructSequence_UnnamedField) != 0;
    return {has_name ? nb::borrow(name) : entry, has_name};
}

nb::object step_text(const Step &step) {
    PyObject *const entry = step.entry.ptr();
    if (step.is_attribute && PyUnicode_Check(entry) && checked(PyUnicode_IsIdentifier(entry)))
        return checked(PyUnicode_FromFormat(".%U", entry));
    nb::object text = nb::steal(PyObject_Repr(entry));
    if (!text.is_valid()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) nb::raise_python_error();
        PyErr_Clear();
        text = checked(PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(entry)->tp_name, entry));
    }
    return checked(PyUnicode_FromFormat("[%U]", text.ptr()));
}

Steps steps_to(const Structure &structure, uint32_t node) {
    std::vector<ChildOf> way;
    Steps steps;
    walk_entries(
        structure, [&](ChildOf at) { way.push_back(at); }, [&] { way.pop_back(); },
        [&](uint32_t i) {
            if (i != node) return;
            for (const ChildOf at : way) steps.push_back(step_of(at.kind, at.refs, at.child));
        });
    return steps;
}

std::string path_of(const Structure &structure, uint32_t node) { return path_text(steps_to(structure, node)); }

void rethrow_at(const Structure &structure, uint32_t node, const char *doing, const Roots &roots) {
    rethrow_at([&] { return roots.path(steps_to(structure, node)); }, doing);
}

void add_paths(const Structure &structure, Ways &ways) {
    const auto entry = [](ChildOf at, bool) { return entry_of(at.kind, at.refs, at.child); };
    collect(structure, ways, {}, entry, [](nb::object path) { return path; });
}

void add_accessors(const Structure &structure, Ways &ways) {
    const auto entry = [](ChildOf at, bool) { return accessor_entry(at.kind, at.refs, at.child); };
    collect(structure, ways, {}, entry, [](nb::object path) { return call(nb::handle(constants.accessor), path); });
}

void add_texts(const Structure &structure, nb::handle roots, Ways &ways) {
    const bool are_many = PyTuple_CheckExact(roots.ptr());
    if (!are_many && !PyUnicode_CheckExact(roots.ptr())) fail(PyExc_TypeError, "the roots are text, or a tuple.");
    const auto make = [&](ChildOf at, bool is_first) {
        if (!is_first) return text_of_step(at.kind, at.refs, at.child);
        PyObject *const root = item_or_null(roots, at.child);
        if (!root || !PyUnicode_CheckExact(root)) fail(PyExc_TypeError, "there are too few roots.");
        return nb::borrow(root);
    };
    collect(structure, ways, are_many ? nb::object() : nb::borrow(roots), make, joined);
}

}  // namespace pydag
