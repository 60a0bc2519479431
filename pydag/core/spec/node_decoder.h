// SPDX-License-Identifier: Apache-2.0
//
// Nodes that came from outside, checked. Nothing in them is believed: errors are `Malformed` and name the
// node or the reference by its index.
//
// Where the nodes come from is a Source:
//
//   size_t size()                         how many there are
//   Node read(size_t i, size_t *indices)  the i-th node, and where its references stand among all: `num_refs(node)`
//                                         indices. Asked once for each node, in their order.
#pragma once

#include "base/interrupt.h"
#include "spec/encoded_refs.h"
#include "spec/node_checker.h"

#include <algorithm>
#include <vector>

namespace pydag {

// Checks the references of a node, which are those at these indices, by their roles, and adds them to `refs`.
void decode_refs(Node node, std::span<const size_t> indices, EncodedRefs &encoded, Refs &refs);

// Calls `use` with each node, and the indices of its references, once they are checked. Returns the number of
// shared objects.
template <class Source, class Use>
uint32_t for_each_node(Source &source, bool none_is_leaf, size_t num_refs_given, Use use) {
    const size_t size = source.size();
    require(size < UINT32_MAX, "nodes: there are too many");
    NodeChecker checker(none_is_leaf);
    std::vector<char> used(num_refs_given);  // 1: by some node
    for (size_t i = 0; i < size; ++i) {
        interruptible_step();
        in_field("nodes", i, [&] {
            size_t indices[kMostRefs];
            const Node node = source.read(i, indices);
            checker.check(node);
            for (uint32_t ref = 0; ref < num_refs(node); ++ref) {
                require(indices[ref] < num_refs_given, "a reference must be an index of refs");
                used[indices[ref]] = 1;
            }
            use(node, indices);
        });
    }
    const uint32_t num_shared = checker.finish_all();
    const auto unused = std::find(used.begin(), used.end(), 0);
    in_field("refs", static_cast<size_t>(unused - used.begin()),
             [&] { require(unused == used.end(), "no node uses it"); });
    return num_shared;
}

// Checks all that can be checked without the references themselves: nesting, anchors and aliases, and that
// each of `num_refs` references is used.
template <class Source>
void check_nodes(Source &source, bool none_is_leaf, size_t num_refs) {
    for_each_node(source, none_is_leaf, num_refs, [](Node, const size_t *) {});
}

// Checks everything, and adds the nodes to a builder that knows its options already. `refs` is a tuple that
// the caller owns, with the references as `EncodedRefs` writes them.
template <class Source>
void decode_nodes(Source &source, nb::handle refs, StructureBuilder &builder) {
    EncodedRefs encoded(refs);
    builder.nodes.reserve(source.size());
    builder.num_shared =
        for_each_node(source, builder.none_is_leaf, encoded.size(), [&](Node node, const size_t *indices) {
            builder.num_leaves += node.is_leaf();
            builder.nodes.push_reserved(node);
            if (num_refs(node) > 0) decode_refs(node, {indices, num_refs(node)}, encoded, builder.refs);
        });
}

}  // namespace pydag
