// SPDX-License-Identifier: Apache-2.0
//
// Checks whether a sequence of nodes is one that flattening could have made.
#pragma once

#include "spec/malformed.h"
#include "structure/cursor.h"
#include "types/registry.h"

#include <vector>

namespace pydag {

// Checks the nodes one by one: there is one root, subtrees are complete, aliases follow finished anchors.
class NodeChecker {
public:
    explicit NodeChecker(bool none_is_leaf) : none_is_leaf_(none_is_leaf) {}

    void check(Node node) {
        require(position_ == 0 || !around_.empty(), "it stands behind the end of the tree");
        if (node.is_leaf() || node.is_none()) {
            require(node.count == 0, "a leaf can't have children");
            require(!node.is_none() || !none_is_leaf_, "None can't be a node where it is a leaf");
        }
        if (!(kinds_ >> static_cast<unsigned>(node.kind) & 1)) check_kind(node.kind);
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
    void check_kind(Kind kind) {
        if (!is_in_this_python(kind)) throw Malformed("this Python has no " + std::string(traits(kind).name));
        kinds_ |= uint32_t{1} << static_cast<unsigned>(kind);
    }

    bool none_is_leaf_;
    uint32_t kinds_ = 0;  // a bit for each kind that this Python has, once there was a node of it
    size_t position_ = 0;
    Nesting<uint32_t> around_;    // of anchors the number, else UINT32_MAX
    std::vector<char> finished_;  // of each anchor: 0 open, 1 complete, 2 has an alias
    static_assert(kNumKinds <= 32, "each kind needs a bit of kinds_");
};

}  // namespace pydag
