// SPDX-License-Identifier: Apache-2.0
#include "structure/listing.h"

#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/paths.h"

#include <iterator>

namespace pydag {
namespace {

// A node whose children are being listed.
struct Frame {
    PyObject *const *refs;
    Kind kind;
    uint32_t count, next;
};

// (name, value) of each meta field.
nb::object meta_fields(FieldsRefs refs) {
    const nb::object names = refs.registration().meta_names;
    RefBuffer<8> pairs;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(refs.meta()); ++i)
        pairs.push_new(checked(PyTuple_Pack(2, PyTuple_GET_ITEM(names.ptr(), i), refs.meta_values()[i])));
    return pairs.take_tuple();
}

nb::object detail_of(Kind kind, PyObject *const *refs) {
    const NodeRefs node{kind, refs};
    if (node.find(Role::kMeta)) return meta_fields({refs});
    for (const Role role : {Role::kAuxData, Role::kFactory, Role::kMaxlen})
        if (PyObject *const detail = node.find(role)) return nb::borrow(detail);
    return nb::none();
}

// Sorted keys and keys in insertion order have one name: whoever asks has no use for the difference.
constexpr const char *kRoleNames[] = {"",       "keys",         "keys",     "names", "class",  "default_factory",
                                      "maxlen", "registration", "aux_data", "meta",  "entries"};
static_assert(std::size(kRoleNames) == kNumRoles);

nb::object role_names(Kind kind) {
    RefBuffer<kMostRefs> names;
    for (uint32_t i = 0; i < num_refs(kind); ++i)
        names.push_new(checked(PyUnicode_InternFromString(kRoleNames[static_cast<size_t>(traits(kind).roles[i])])));
    return names.take_tuple();
}

nb::object class_or_none(Kind kind, PyObject *const *refs) {
    const nb::object type = type_of(kind, refs);
    return type.is_valid() ? type : nb::none();
}

}  // namespace

nb::object kind_name(Kind kind) { return checked(PyUnicode_InternFromString(traits(kind).name)); }

nb::object node_kinds() {
    nb::object rows = checked(PyList_New(0));
    for (size_t i = 0; i < kNumKinds; ++i) {
        const Kind kind = static_cast<Kind>(i);
        const nb::object name = kind_name(kind), roles = role_names(kind);
        const nb::object row =
            checked(Py_BuildValue("(OOOO)", name.ptr(), roles.ptr(), traits(kind).is_mapping ? Py_True : Py_False,
                                  traits(kind).has_identity ? Py_True : Py_False));
        checked(PyList_Append(rows.ptr(), row.ptr()));
    }
    return rows;
}

nb::object listing(const Structure &structure) {
    nb::object records = checked(PyList_New(0));
    Buffer<Frame, 24> frames;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        nb::object entry = nb::none(), attribute = nb::none();
        if (!frames.empty()) {
            Frame &parent = frames.back();
            const uint32_t child = parent.next++;
            entry = entry_of(parent.kind, parent.refs, child);
            const Step step = step_of(parent.kind, parent.refs, child);
            if (step.is_attribute && PyUnicode_Check(step.entry.ptr())) attribute = step.entry;
        }
        const long number = node.is_alias() ? node.count : node.is_anchor ? at.number() : -1L;
        const nb::object kind = kind_name(node.kind), type = class_or_none(node.kind, at.refs());
        const nb::object detail = detail_of(node.kind, at.refs());
        const nb::object record =
            checked(Py_BuildValue("(OlkOOOO)", kind.ptr(), number, static_cast<unsigned long>(num_children(node)),
                                  entry.ptr(), attribute.ptr(), type.ptr(), detail.ptr()));
        checked(PyList_Append(records.ptr(), record.ptr()));
        if (num_children(node) > 0) frames.push({at.refs(), node.kind, node.count, 0});
        while (!frames.empty() && frames.back().next == frames.back().count) frames.pop();
    }
    return records;
}

}  // namespace pydag
