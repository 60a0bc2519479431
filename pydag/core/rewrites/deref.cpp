// SPDX-License-Identifier: Apache-2.0
#include "rewrites/rewrites.h"

#include "base/constants.h"
#include "base/interrupt.h"
#include "nodes/nodes.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/fields.h"
#include "types/keys.h"
#include "walks/walks.h"

namespace pydag {
namespace {

PyObject *registrations[3];  // by Mark; owned for the life of the process

// Adds a node of one of the three classes; its meta fields are `meta`.
void add_mark(detail::Mark mark, nb::object meta, uint32_t count, StructureBuilder &result) {
    PyObject *const registration = registrations[static_cast<size_t>(mark)];
    result.add(Kind::kFields, count);
    result.refs.push_borrowed(registration);
    result.refs.push_borrowed(RegistrationBox::of(registration).data.ptr());
    result.refs.push_new(std::move(meta));
}

nb::object index_meta(uint64_t index) {
    return checked(PyTuple_Pack(1, checked(PyLong_FromUnsignedLongLong(index)).ptr()));
}

// The aux_data of a Node. Null for a node that stays as it is.
nb::object node_aux(Kind kind, PyObject *const *refs) {
    return detail::mark_of(kind, refs) == detail::Mark::kOther ? aux_of_node(kind, refs) : nb::object();
}

// One more than the highest index of the Anchors that the tree has already.
uint64_t first_free_index(const Structure &structure) {
    uint64_t next = 0;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        if (detail::mark_of(at.kind(), at.refs()) != detail::Mark::kAnchor) continue;
        const uint64_t index = detail::index_of(structure, at.position(), at.refs());
        if (index >= next) next = index + 1;
    }
    return next;
}

}  // namespace

namespace detail {

Mark mark_of(Kind kind, PyObject *const *refs) {
    if (!is_registered(kind)) return Mark::kOther;
    for (int i = 0; i < 3; ++i)
        if (FieldsRefs{refs}.registration_box() == registrations[i]) return static_cast<Mark>(i);
    return Mark::kOther;
}

uint64_t index_of(const Structure &structure, uint32_t node, PyObject *const *refs) {
    PyObject *const index = FieldsRefs{refs}.meta_values()[0];
    const char *const what = "the index of an Anchor or Alias must be an int from 0 to 2**63 - 1, got %U, at %s";
    const auto path = [&] { return path_of(structure, node); };
    if (!PyLong_Check(index)) fail(PyExc_TypeError, what, short_repr(index).ptr(), path().c_str());
    const long long value = PyLong_AsLongLong(index);
    PyErr_Clear();
    if (value < 0) fail(PyExc_ValueError, what, short_repr(index).ptr(), path().c_str());
    return static_cast<uint64_t>(value);
}

}  // namespace detail

bool is_deref_class(nb::handle type) {
    for (PyObject *registration : registrations)
        if (registration && RegistrationBox::of(registration).type.is(type)) return true;
    return false;
}

void set_deref_classes(nb::object anchor, nb::object alias, nb::object node) {
    const nb::object classes[3] = {std::move(anchor), std::move(alias), std::move(node)};
    for (int i = 0; i < 3; ++i) {
        nb::object registration = find_registration(classes[i], constants.empty_text);
        resolve_fields(RegistrationBox::of(registration));
        registrations[i] = registration.release().ptr();
    }
}

nb::object deref(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    const Structure structure = parts.structure();
    StructureBuilder result;
    uint64_t next = first_free_index(structure);
    const uint64_t offset = next;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        if (node.is_alias()) {
            add_mark(detail::Mark::kAlias, index_meta(offset + node.count), 0, result);
            continue;
        }
        if (node.is_anchor) add_mark(detail::Mark::kAnchor, index_meta(next++), 1, result);
        if (nb::object aux = node_aux(node.kind, at.refs()); aux.is_valid()) {
            nb::object meta = checked(PyTuple_Pack(2, type_of(node.kind, at.refs()).ptr(), aux.ptr()));
            add_mark(detail::Mark::kNode, std::move(meta), 1, result);
            result.add(Kind::kTuple, node.count);
        } else {
            result.add(node.kind, node.count);
            result.add_refs(at.refs(), num_refs(node));
        }
    }
    result.num_leaves = structure.num_leaves;
    return unflatten(result.view(), parts.leaves().data());
}

}  // namespace pydag
