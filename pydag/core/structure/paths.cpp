// SPDX-License-Identifier: Apache-2.0
#include "structure/paths.h"

#include "types/keys.h"
#include "types/registry.h"

namespace pydag {
namespace {

// A container on the way to the current node.
struct Frame {
    PyObject *const *refs;
    Kind kind;
    uint32_t count, next;  // of its children: how many, and which comes next
};

// Calls `enter(kind, refs, child)` before each child of a container, `leave()` behind it, and
// `visit(position)` at every node.
template <class Enter, class Leave, class Visit>
void walk_entries(const Structure &structure, Enter enter, Leave leave, Visit visit) {
    Buffer<Frame, 24> frames;
    PyObject *const *refs = structure.refs;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        const Node node = structure.nodes[i];
        if (!frames.empty()) {
            Frame &frame = frames.back();
            enter(frame.kind, frame.refs, frame.next++);
        }
        visit(i);
        if (num_children(node) > 0) {
            frames.push({refs, node.kind, node.count, 0});
        } else {
            while (!frames.empty() && frames.back().next == frames.back().count) frames.pop(), leave();
            if (!frames.empty()) leave();
        }
        refs += num_refs(node);
    }
}

// One object per leaf, made by `finish` from the entries on the way to it, which `make` makes.
template <class Make, class Finish>
nb::object collect(const Structure &structure, Make make, Finish finish) {
    RefBuffer<24> way;
    nb::object result = checked(PyList_New(0));
    walk_entries(
        structure, [&](Kind kind, PyObject *const *refs, uint32_t child) { way.push_new(make(kind, refs, child)); },
        [&] { way.drop_to(way.size() - 1); },
        [&](uint32_t i) {
            if (structure.nodes[i].kind != Kind::kLeaf) return;
            checked(PyList_Append(result.ptr(), finish(tuple_of(way.data(), way.size())).ptr()));
        });
    return result;
}

PyObject *optree_name(const char *name) { return import_forever("optree", name); }

nb::object builtin_entry_type(Kind kind) {
    static PyObject *const sequence = optree_name("SequenceEntry"), *const mapping = optree_name("MappingEntry"),
                           *const namedtuple = optree_name("NamedTupleEntry"),
                           *const structseq = optree_name("StructSequenceEntry");
    if (kind == Kind::kNamedTuple) return nb::borrow(namedtuple);
    if (kind == Kind::kStructSequence) return nb::borrow(structseq);
    return nb::borrow(traits(kind).entries == Entries::kKeys ? mapping : sequence);
}

nb::object accessor_entry(Kind kind, PyObject *const *refs, uint32_t child) {
    static PyObject *const kinds = optree_name("PyTreeKind");
    const bool is_registered = kind == Kind::kCustom || kind == Kind::kFields;
    const nb::object entry_type =
        is_registered ? RegistrationBox::of(refs[0]).path_entry_type : builtin_entry_type(kind);
    const Kind public_kind = is_registered ? Kind::kCustom : kind;
    const nb::object number = checked(PyLong_FromLong(static_cast<long>(public_kind)));
    return call(entry_type, entry_of(kind, refs, child), type_of(kind, refs), call(kinds, number));
}

}  // namespace

nb::object entry_of(Kind kind, PyObject *const *refs, uint32_t child) {
    const Entries entries = traits(kind).entries;
    if (entries == Entries::kKeys) return nb::borrow(KeysBox::of(refs[kind == Kind::kFields]).key(child));
    if (entries == Entries::kCustom && refs[2] != Py_None) return nb::borrow(PyTuple_GET_ITEM(refs[2], child));
    return checked(PyLong_FromSize_t(child));
}

nb::object type_of(Kind kind, PyObject *const *refs) {
    static PyObject *const types[kNumKinds] = {nullptr,
                                               nullptr,
                                               reinterpret_cast<PyObject *>(Py_TYPE(Py_None)),
                                               reinterpret_cast<PyObject *>(&PyTuple_Type),
                                               reinterpret_cast<PyObject *>(&PyList_Type),
                                               reinterpret_cast<PyObject *>(&PyDict_Type),
                                               nullptr,
                                               reinterpret_cast<PyObject *>(&PyODict_Type),
                                               import_forever("collections", "defaultdict"),
                                               import_forever("collections", "deque"),
                                               nullptr,
                                               nullptr,
                                               nullptr};
    if (kind == Kind::kCustom || kind == Kind::kFields) return RegistrationBox::of(refs[0]).type;
    if (kind == Kind::kNamedTuple || kind == Kind::kStructSequence) return nb::borrow(refs[0]);
    return nb::borrow(types[static_cast<size_t>(kind)]);
}

Step step_of(Kind kind, PyObject *const *refs, uint32_t child) {
    static PyObject *const attribute = optree_name("GetAttrEntry");
    static PyObject *const structseq_fields = optree_name("structseq_fields");
    static PyObject *const fields_name = intern_forever("_fields");
    nb::object entry = entry_of(kind, refs, child);
    if (kind == Kind::kFields) return {std::move(entry), true};
    if (kind == Kind::kCustom) {
        const nb::object entry_type = RegistrationBox::of(refs[0]).path_entry_type;
        const bool is_attribute =
            PyType_Check(entry_type.ptr()) && PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(entry_type.ptr()),
                                                               reinterpret_cast<PyTypeObject *>(attribute));
        return {std::move(entry), is_attribute};
    }
    if (kind != Kind::kNamedTuple && kind != Kind::kStructSequence) return {std::move(entry), false};
    // A class may have changed its `_fields` since: then the index says it.
    nb::object fields = nb::steal(kind == Kind::kNamedTuple ? PyObject_GetAttr(refs[0], fields_name)
                                                            : PyObject_CallOneArg(structseq_fields, refs[0]));
    PyErr_Clear();
    if (!fields.is_valid() || !PyTuple_Check(fields.ptr()) || PyTuple_GET_SIZE(fields.ptr()) <= child ||
        !PyUnicode_Check(PyTuple_GET_ITEM(fields.ptr(), child)))
        return {std::move(entry), false};
    return {nb::borrow(PyTuple_GET_ITEM(fields.ptr(), child)), true};
}

std::vector<Steps> steps_to(const Structure &structure, const std::vector<uint32_t> &nodes) {
    struct Edge {
        Kind kind;
        PyObject *const *refs;
        uint32_t child;
    };
    std::vector<Edge> way;
    std::vector<Steps> found;
    walk_entries(
        structure, [&](Kind kind, PyObject *const *refs, uint32_t child) { way.push_back({kind, refs, child}); },
        [&] { way.pop_back(); },
        [&](uint32_t i) {
            if (found.size() == nodes.size() || nodes[found.size()] != i) return;
            Steps steps;
            for (const Edge &edge : way) steps.push_back(step_of(edge.kind, edge.refs, edge.child));
            found.push_back(std::move(steps));
        });
    return found;
}

std::vector<nb::object> slot_paths(const Structure &structure, const std::vector<uint32_t> &nodes) {
    RefBuffer<24> way;
    std::vector<nb::object> found;
    walk_entries(
        structure, [&](Kind kind, PyObject *const *refs, uint32_t child) { way.push_new(entry_of(kind, refs, child)); },
        [&] { way.drop_to(way.size() - 1); },
        [&](uint32_t i) {
            if (found.size() < nodes.size() && nodes[found.size()] == i)
                found.push_back(tuple_of(way.data(), way.size()));
        });
    return found;
}

nb::object leaf_paths(const Structure &structure) {
    return collect(structure, entry_of, [](nb::object path) { return path; });
}

nb::object leaf_accessors(const Structure &structure) {
    static PyObject *const accessor = optree_name("PyTreeAccessor");
    return collect(structure, accessor_entry, [](nb::object path) { return call(nb::handle(accessor), path); });
}

}  // namespace pydag
