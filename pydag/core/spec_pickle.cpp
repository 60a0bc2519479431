// SPDX-License-Identifier: Apache-2.0
//
// A spec as plain picklable objects, and back.
//
//   (format, none_is_leaf, namespace, nodes, refs)
//
// `nodes` is 8 bytes a node: kind, is_anchor, 0, 0, and the count as 4 bytes, the lowest first.
// `refs` holds the references in order, with two kinds of them written out: keys as (insertion
// order, None or the place of each key in traversal order), registrations as (class, namespace).
#include "identity_table.h"
#include "keys.h"
#include "registry.h"
#include "spec.h"

namespace pydag {
namespace {

nb::object encode_keys(const Keys &keys) {
    nb::object places = nb::none();
    if (!keys.in_order()) {
        places = checked(PyTuple_New(keys.size()));
        for (uint32_t i = 0; i < keys.size(); ++i)
            PyTuple_SET_ITEM(places.ptr(), i, checked(PyLong_FromUnsignedLong(keys.rank(i))).release().ptr());
    }
    return checked(PyTuple_Pack(2, keys.inserted.ptr(), places.ptr()));
}

nb::object encode_ref(PyObject *ref) {
    if (KeysBox::check(ref)) return encode_keys(KeysBox::of(ref));
    if (!RegistrationBox::check(ref)) return nb::borrow(ref);
    const Registration &registration = RegistrationBox::of(ref);
    return checked(PyTuple_Pack(2, registration.type.ptr(), registration.namespace_.ptr()));
}

}  // namespace

nb::object state_of(const Spec &spec) {
    const Structure &structure = spec.structure();
    nb::object nodes = checked(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(structure.num_nodes) * 8));
    auto *out = reinterpret_cast<unsigned char *>(PyBytes_AS_STRING(nodes.ptr()));
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        const Node node = structure.nodes[i];
        *out++ = static_cast<unsigned char>(node.kind);
        *out++ = node.is_anchor;
        *out++ = 0;
        *out++ = 0;
        for (int shift = 0; shift < 32; shift += 8) *out++ = static_cast<unsigned char>(node.count >> shift);
    }
    // Equal references become one object, which pickle writes once.
    RefBuffer<48> refs;
    IdentityTable seen;
    for (uint32_t i = 0; i < structure.num_refs; ++i) {
        const uint32_t first = seen.find_or_add(structure.refs[i], i);
        nb::object encoded = first == IdentityTable::kNew ? encode_ref(structure.refs[i]) : nb::borrow(refs[first]);
        refs.push_new(std::move(encoded));
    }
    return checked(Py_BuildValue("(lOOOO)", kStateFormat, structure.none_is_leaf ? Py_True : Py_False,
                                 structure.namespace_, nodes.ptr(), refs.take_tuple().ptr()));
}

}  // namespace pydag
