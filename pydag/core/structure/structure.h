// SPDX-License-Identifier: Apache-2.0
//
// The structure of a DAG: its nodes in pre-order, as one flat array of 8 bytes each, and a second array of their
// references (keys, types, aux_data, registrations). The kind of a node determines how many references it has: cursor.h
// walks over both arrays, node_refs.h knows which reference is which.
//
// The first occurrence of a shared object is an anchor, marked by a flag. Anchors are numbered 0, 1, 2, ... in the
// order of the nodes; each later occurrence is an alias node with the number of its anchor. So structures with the same
// sharing have equal arrays.
#pragma once

#include "base/buffer.h"
#include "types/kind.h"

#include <span>
#include <vector>

namespace pydag {

struct Node {
    Kind kind;
    bool is_anchor;
    uint16_t zero;   // padding, named so that nodes compare as bytes
    uint32_t count;  // the number of children; for an alias its anchor's number

    bool is_leaf() const { return pydag::is_leaf(kind); }
    bool is_none() const { return pydag::is_none(kind); }
    bool is_alias() const { return pydag::is_alias(kind); }
};
static_assert(sizeof(Node) == 8);

inline uint32_t num_children(Node node) { return node.is_alias() ? 0 : node.count; }
inline uint32_t num_refs(Node node) { return num_refs(node.kind); }

// A structure to read; the arrays belong to somebody else.
struct Structure {
    const Node *nodes;
    PyObject *const *refs;
    uint32_t num_nodes, num_refs, num_leaves, num_shared;
    bool none_is_leaf;
    PyObject *namespace_;  // a str

    // The references of all nodes, in the order of the nodes.
    std::span<PyObject *const> all_refs() const { return {refs, num_refs}; }
};

using Refs = RefBuffer<48>;

// A structure while it is being made.
struct StructureBuilder {
    Buffer<Node, 96> nodes;
    Refs refs;
    uint32_t num_leaves = 0, num_shared = 0;
    bool none_is_leaf = false;
    nb::object namespace_;

    // Returns the position of the new node.
    uint32_t add(Kind kind, uint32_t count) {
        if (nodes.size() >= UINT32_MAX - 1) [[unlikely]]
            fail_too_many_nodes();  // GCOVR_EXCL_LINE: no test has the memory
        nodes.push({kind, false, 0, count});
        return static_cast<uint32_t>(nodes.size() - 1);
    }
    void add_refs(PyObject *const *first, uint32_t count) {
        for (uint32_t i = 0; i < count; ++i) refs.push_borrowed(first[i]);
    }
    [[noreturn]] static void fail_too_many_nodes();
    Structure view() const {
        return {nodes.data(),
                refs.data(),
                static_cast<uint32_t>(nodes.size()),
                static_cast<uint32_t>(refs.size()),
                num_leaves,
                num_shared,
                none_is_leaf,
                namespace_.ptr()};
    }
};

// Where something begins in a structure: how many nodes, references and leaves lie before it.
struct Extent {
    uint32_t node, ref, leaf;
};
// Replaces, in each alias, the position of its anchor by the number of its anchor.
void number_anchors(StructureBuilder &builder);

}  // namespace pydag
