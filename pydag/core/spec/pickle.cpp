// SPDX-License-Identifier: Apache-2.0
//
// A spec as plain picklable objects, and back.
//
//   (format, none_is_leaf, namespace, nodes, places, refs)
//
// `nodes` is 8 bytes a node: the code of its kind (types/kind.h), is_anchor, 0, 0, and the count as 4 bytes, the lowest
// first. `refs` holds the distinct references, with two kinds of them written out: keys as (insertion order, None or
// the index of each key in traversal order), registrations as (class, namespace). `places` has for each reference, in
// order, its index in `refs`: in 1, 2 or 4 bytes, the lowest first, as the number of `refs` requires.
#include "base/identity_table.h"
#include "base/interrupt.h"
#include "spec/spec.h"
#include "types/keys.h"
#include "types/registry.h"

namespace pydag {
namespace {

nb::object encode_keys(const Keys &keys) {
    nb::object places = nb::none();
    if (!keys.in_order) {
        places = checked(PyTuple_New(keys.size()));
        for (uint32_t i = 0; i < keys.size(); ++i)
            PyTuple_SET_ITEM(places.ptr(), i, checked(PyLong_FromUnsignedLong(keys.rank(i))).release().ptr());
    }
    return checked(PyTuple_Pack(2, keys.tuple().ptr(), places.ptr()));
}

nb::object encode_ref(PyObject *ref) {
    if (KeysBox::check(ref)) return encode_keys(KeysBox::of(ref));
    if (!RegistrationBox::check(ref)) return nb::borrow(ref);
    const Registration &registration = RegistrationBox::of(ref);
    return checked(PyTuple_Pack(2, registration.type.ptr(), registration.namespace_.ptr()));
}

nb::object encode_places(const Buffer<uint32_t, 256> &places, size_t num_refs) {
    const size_t width = place_width(num_refs);
    nb::object bytes = checked(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(places.size() * width)));
    auto *out = reinterpret_cast<unsigned char *>(PyBytes_AS_STRING(bytes.ptr()));
    for (size_t i = 0; i < places.size(); ++i)
        for (size_t byte = 0; byte < width; ++byte) *out++ = static_cast<unsigned char>(places[i] >> 8 * byte);
    return bytes;
}

}  // namespace

nb::object state_of(const Spec &spec) {
    const Structure &structure = spec.structure();
    nb::object nodes = checked(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(structure.num_nodes) * 8));
    auto *out = reinterpret_cast<unsigned char *>(PyBytes_AS_STRING(nodes.ptr()));
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        const Node node = structure.nodes[i];
        *out++ = traits(node.kind).code;
        *out++ = node.is_anchor;
        *out++ = 0;
        *out++ = 0;
        for (int shift = 0; shift < 32; shift += 8) *out++ = static_cast<unsigned char>(node.count >> shift);
    }
    RefBuffer<48> refs;
    Buffer<uint32_t, 256> places;
    IdentityTable seen;
    for (PyObject *const ref : structure.all_refs()) {
        interruptible_step();
        const auto next = static_cast<uint32_t>(refs.size());
        const uint32_t known = seen.find_or_add(ref, next);
        places.push(known == IdentityTable::kNew ? next : known);
        if (known == IdentityTable::kNew) refs.push_new(encode_ref(ref));
    }
    const nb::object packed = encode_places(places, refs.size()), given = refs.take_tuple();
    return checked(Py_BuildValue("(lOOOOO)", kStateFormat, structure.none_is_leaf ? Py_True : Py_False,
                                 structure.namespace_, nodes.ptr(), packed.ptr(), given.ptr()));
}

}  // namespace pydag
