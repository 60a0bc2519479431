// SPDX-License-Identifier: Apache-2.0
#include "structure.h"

#include "error.h"

namespace pydag {

uint32_t Draft::add(Kind kind, uint32_t count) {
    if (nodes.size() >= UINT32_MAX - 1) [[unlikely]]
        fail(PyExc_OverflowError, "a structure can't have more than %zu nodes", size_t{UINT32_MAX - 1});
    nodes.push({kind, false, 0, count});
    return static_cast<uint32_t>(nodes.size() - 1);
}

Extent skip_subtree(const Structure &structure, Extent at) {
    // The number of nodes that are still to come before the subtree is complete.
    for (uint64_t pending = 1; pending > 0; --pending) {
        const Node node = structure.nodes[at.node++];
        pending += num_children(node);
        at.ref += num_refs(node);
        at.leaf += node.kind == Kind::kLeaf;
    }
    return at;
}

void find_anchors(const Structure &structure, Buffer<Extent, 16> &anchors) {
    Extent at = {0, 0, 0};
    for (; at.node < structure.num_nodes; ++at.node) {
        const Node node = structure.nodes[at.node];
        if (node.is_anchor) anchors.push(at);
        at.ref += num_refs(node);
        at.leaf += node.kind == Kind::kLeaf;
    }
}

void number_anchors(Draft &draft) {
    Buffer<uint32_t, 64> numbers;
    const size_t size = draft.nodes.size();
    numbers.extend(size);
    for (size_t i = 0; i < size; ++i) {
        Node &node = draft.nodes[i];
        if (node.is_anchor) numbers[i] = draft.num_shared++;
        if (node.kind == Kind::kAlias) node.count = numbers[node.count];
    }
}

}  // namespace pydag
