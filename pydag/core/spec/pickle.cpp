// SPDX-License-Identifier: Apache-2.0
//
// A spec as plain picklable objects, and back. Nothing in a state that is read is believed.
//
//   (format, none_is_leaf, namespace, nodes, indices, refs)
//
// `nodes` is 8 bytes a node: the code of its kind (types/kind.h), is_anchor, 0, 0, and the count as 4 bytes, the lowest
// first. `refs` has the distinct references (encoded_refs.h), `indices` the index in `refs` of each reference: 1, 2 or
// 4 bytes, the lowest first, as the number of `refs` requires.
#include "spec/encoded_refs.h"
#include "spec/node_decoder.h"
#include "spec/spec.h"
#include "types/registry.h"

#include <algorithm>
#include <array>
#include <bit>

namespace pydag {
namespace {

constexpr long kFormat = 2;
// How many bytes the index of a reference takes, where there are so many.
size_t index_width(size_t num_refs) { return num_refs <= 0x100 ? 1 : num_refs <= 0x10000 ? 2 : 4; }

nb::object encode_indices(const Buffer<uint32_t, 256> &indices, size_t num_refs) {
    const size_t width = index_width(num_refs);
    nb::object bytes = checked(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(indices.size() * width)));
    auto *out = reinterpret_cast<unsigned char *>(PyBytes_AS_STRING(bytes.ptr()));
    for (size_t i = 0; i < indices.size(); ++i)
        for (size_t byte = 0; byte < width; ++byte) *out++ = static_cast<unsigned char>(indices[i] >> 8 * byte);
    return bytes;
}

// The kind of each code; kNumKinds where there is none.
constexpr std::array<uint8_t, 256> kKindsByCode = [] {
    std::array<uint8_t, 256> kinds{};
    kinds.fill(kNumKinds);
    for (uint8_t kind = 0; kind < kNumKinds; ++kind) kinds[kKindTraits[kind].code] = kind;
    return kinds;
}();

// Four bytes, the lowest first.
uint32_t read_word(const unsigned char *bytes) {
    return bytes[0] | static_cast<uint32_t>(bytes[1]) << 8 | static_cast<uint32_t>(bytes[2]) << 16 |
           static_cast<uint32_t>(bytes[3]) << 24;
}

// Makes a node as one word: reading a word that was written member by member makes the processor wait.
Node make_node(uint8_t kind, bool is_anchor, uint32_t count) {
    if constexpr (std::endian::native == std::endian::little)
        return std::bit_cast<Node>(kind | uint64_t{is_anchor} << 8 | uint64_t{count} << 32);
    else return {static_cast<Kind>(kind), is_anchor, 0, count};
}

Node decode_node(const unsigned char *bytes) {
    const uint8_t kind = kKindsByCode[bytes[0]];
    require(kind < kNumKinds, "unknown kind of node");
    const uint32_t flags = read_word(bytes) >> 8;
    require(flags <= 1, "unknown flag of a node");
    return make_node(kind, flags == 1, read_word(bytes + 4));
}

// The nodes and indices of a state: two bytes objects, which the caller owns.
class PackedNodes {
public:
    PackedNodes(nb::handle nodes, nb::handle indices, size_t num_refs)
        : nodes_(bytes_of(nodes)),
          num_nodes_(static_cast<size_t>(PyBytes_GET_SIZE(nodes.ptr())) / 8),
          indices_(bytes_of(indices)),
          width_(index_width(num_refs)),
          num_indices_(static_cast<size_t>(PyBytes_GET_SIZE(indices.ptr())) / width_) {
        require(num_indices_ * width_ == static_cast<size_t>(PyBytes_GET_SIZE(indices.ptr())),
                "the indices of references must be whole");
    }

    size_t size() const { return num_nodes_; }
    // No more than so many references, if nothing is malformed.
    size_t most_refs() const { return std::min(num_indices_, num_nodes_ * kMostRefs); }
    Node read(size_t i, size_t *indices) {
        const Node node = decode_node(nodes_ + i * 8);
        const uint32_t count = num_refs(node);
        require(count <= num_indices_ - next_, "references are missing");
        for (uint32_t ref = 0; ref < count; ++ref) {
            const unsigned char *const bytes = indices_ + next_++ * width_;
            indices[ref] = bytes[0];
            for (size_t byte = 1; byte < width_; ++byte) indices[ref] |= size_t{bytes[byte]} << 8 * byte;
        }
        return node;
    }
    void finish() const { require(next_ == num_indices_, "there are too many references"); }

private:
    static const unsigned char *bytes_of(nb::handle bytes) {
        return reinterpret_cast<const unsigned char *>(PyBytes_AS_STRING(bytes.ptr()));
    }

    const unsigned char *nodes_;
    size_t num_nodes_;
    const unsigned char *indices_;
    size_t width_, num_indices_, next_ = 0;
};

void restore_parts(PyObject *const *parts, StructureBuilder &builder) {
    require(PyLong_CheckExact(parts[0]) && PyLong_AsLong(parts[0]) == kFormat && !PyErr_Occurred(), "unknown format");
    require(PyBool_Check(parts[1]), "none_is_leaf must be a bool");
    require(PyUnicode_CheckExact(parts[2]), "the namespace must be a string");
    require(PyBytes_CheckExact(parts[3]) && PyBytes_GET_SIZE(parts[3]) % 8 == 0, "nodes must be 8 bytes each");
    require(PyBytes_CheckExact(parts[4]), "the indices of references must be bytes");
    require(is_tuple(parts[5]), "references must be a tuple");
    builder.none_is_leaf = parts[1] == Py_True;
    if (PyUnicode_GET_LENGTH(parts[2]) > 0) namespace_text(parts[2]);  // checks it
    builder.namespace_ = nb::borrow(parts[2]);
    PackedNodes nodes(parts[3], parts[4], static_cast<size_t>(PyTuple_GET_SIZE(parts[5])));
    builder.refs.reserve(nodes.most_refs());
    decode_nodes(nodes, parts[5], builder);
    nodes.finish();
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
    return checked(Py_BuildValue("(lOOOOO)", kFormat, structure.none_is_leaf ? Py_True : Py_False, structure.namespace_,
                                 nodes.ptr(), packed.ptr(), written.refs.ptr()));
}

void restore_state(nb::handle state, StructureBuilder &builder) {
    if (!is_tuple(state) || PyTuple_GET_SIZE(state.ptr()) != 6)
        fail(PyExc_TypeError, "the state of a PyDagSpec must be a tuple of six, got %U", short_repr(state).ptr());
    try {
        restore_parts(&PyTuple_GET_ITEM(state.ptr(), 0), builder);
    } catch (const Malformed &error) {
        throw Malformed("malformed state of a PyDagSpec: " + error.text());
    }
}

}  // namespace pydag
