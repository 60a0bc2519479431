// SPDX-License-Identifier: Apache-2.0
//
// The structure of a DAG: its nodes in pre-order, as one flat array of 8 bytes each, and beside
// it the references that the nodes keep (keys, types, aux_data, registrations), in the same order.
// How many references a node has follows from its kind, so a walk over the nodes carries a cursor
// into the references along.
//
// A shared object stands where it was first met: the anchor, marked by a flag. Anchors are
// numbered 0, 1, 2, ... in the order of the nodes, and each later occurrence is an alias node that
// holds its anchor's number. So structures that are shared alike have equal arrays.
//
// cursor.h walks over the nodes; node_refs.h knows which reference is which.
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
            fail_too_many_nodes();
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
// Where a subtree begins and ends, and the number of the first anchor behind it.
struct Subtree {
    Extent begin, end;
    uint32_t next_number;
};
// The subtree of each node, by its position.
std::vector<Subtree> find_subtrees(const Structure &structure);
// Replaces, in each alias, the position of its anchor by the number of its anchor.
void number_anchors(StructureBuilder &builder);

}  // namespace pydag
