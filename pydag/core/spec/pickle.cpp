// SPDX-License-Identifier: Apache-2.0
//
// A spec as plain picklable objects, and back.
//
//   (format, none_is_leaf, namespace, nodes, indices, refs)
//
// `nodes` is 8 bytes a node: the code of its kind (types/kind.h), is_anchor, 0, 0, and the count as 4 bytes, the lowest
// first. `refs` holds the distinct references, written out as encoded_refs.h says. `indices` has for each reference, in
// order, its index in `refs`: in 1, 2 or 4 bytes, the lowest first, as the number of `refs` requires.
#include "spec/encoded_refs.h"
#include "spec/spec.h"

namespace pydag {
namespace {

nb::object encode_indices(const Buffer<uint32_t, 256> &indices, size_t num_refs) {
    const size_t width = index_width(num_refs);
    nb::object bytes = checked(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(indices.size() * width)));
    auto *out = reinterpret_cast<unsigned char *>(PyBytes_AS_STRING(bytes.ptr()));
    for (size_t i = 0; i < indices.size(); ++i)
        for (size_t byte = 0; byte < width; ++byte) *out++ = static_cast<unsigned char>(indices[i] >> 8 * byte);
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
    const WrittenRefs written(structure);
    const nb::object packed =
        encode_indices(written.indices, static_cast<size_t>(PyTuple_GET_SIZE(written.refs.ptr())));
    return checked(Py_BuildValue("(lOOOOO)", kStateFormat, structure.none_is_leaf ? Py_True : Py_False,
                                 structure.namespace_, nodes.ptr(), packed.ptr(), written.refs.ptr()));
}

}  // namespace pydag
