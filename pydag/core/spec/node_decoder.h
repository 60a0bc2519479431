// SPDX-License-Identifier: Apache-2.0
//
// Checks nodes that came from outside: errors are `Malformed` and name the node or the reference by its index. The
// nodes come from a Source:
//
//   size_t size()                         the number of nodes
//   Node read(size_t i, size_t *indices)  the i-th node, and the indices of its references among all; called once for
//                                         each node, in their order
#pragma once

#include "base/interrupt.h"
#include "spec/encoded_refs.h"
#include "structure/cursor.h"
#include "types/registry.h"

#include <algorithm>
#include <vector>

namespace pydag {

// Checks that there is one root, that subtrees are complete, and that aliases follow finished anchors.
class NodeChecker {
public:
    explicit NodeChecker(bool none_is_leaf) : none_is_leaf_(none_is_leaf) {}

    void check(Node node) {
        require(position_ == 0 || !around_.empty(), "it stands behind the end of the tree");
        if (node.is_leaf() || node.is_none()) {
            require(node.count == 0, "a leaf can't have children");
            require(!node.is_none() || !none_is_leaf_, "None can't be a node where it is a leaf");
        }
        if (!is_in_this_python(node.kind)) throw Malformed("this Python has no " + std::string(traits(node.kind).name));
        if (node.is_alias()) {
            require(!node.is_anchor, "an alias can't be an anchor");
            if (node.count >= finished_.size() || finished_[node.count] == 0)
                throw Malformed("alias " + std::to_string(node.count) + " must stand behind its anchor");
            finished_[node.count] = 2;
        }
        uint32_t number = UINT32_MAX;
        if (node.is_anchor) {
            if (!traits(node.kind).has_identity)
                throw Malformed("a " + std::string(traits(node.kind).name) + " can't be shared");
            number = static_cast<uint32_t>(finished_.size());
            finished_.push_back(0);
        }
        around_.add(number, num_children(node), [&](uint32_t done) {
            if (done != UINT32_MAX) finished_[done] = 1;
        });
        ++position_;
    }
    uint32_t finish_all() const {
        require(position_ > 0 && around_.empty(), "nodes: some are missing");
        for (size_t i = 0; i < finished_.size(); ++i)
            if (finished_[i] != 2) throw Malformed("nodes: anchor " + std::to_string(i) + " has no alias");
        return static_cast<uint32_t>(finished_.size());
    }

private:
    bool none_is_leaf_;
    size_t position_ = 0;
    Nesting<uint32_t> around_;    // of anchors the number, else UINT32_MAX
    std::vector<char> finished_;  // of each anchor: 0 open, 1 complete, 2 has an alias
};

// Checks nesting, anchors and aliases, and that each reference is used. Calls `use` with each node and the indices of
// its references. Returns the number of shared objects.
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
            if (num_refs(node) > 0) encoded.decode(node, indices, builder.refs);
        });
}

}  // namespace pydag
