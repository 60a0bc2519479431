// SPDX-License-Identifier: Apache-2.0
#include "walks/all_paths.h"

#include "base/interrupt.h"
#include "base/tuples.h"
#include "structure/paths.h"
#include "walks/post_order.h"

namespace pydag {
namespace {

// Which nodes lead to leaves, by position; an alias as its anchor.
class Fertility {
public:
    explicit Fertility(const Structure &structure)
        : structure_(structure), of_anchor_(structure.num_shared), of_node_(structure.num_nodes) {
        visit_children_first(structure, *this);
    }
    bool operator[](uint32_t position) const { return of_node_[position]; }

    void visit(const VisitedNode &at) {
        const Node node = structure_.nodes[at.position];
        bool is_fertile = node.is_leaf();
        for (uint32_t i = 0; i < num_children(node); ++i) {
            is_fertile |= pending_.back();
            pending_.pop_back();
        }
        of_node_[at.position] = is_fertile;
        if (node.is_anchor) of_anchor_[at.number] = is_fertile;
        pending_.push_back(is_fertile);
    }
    void visit_alias(uint32_t number) { pending_.push_back(of_anchor_[number]); }

private:
    const Structure &structure_;
    std::vector<bool> of_anchor_, of_node_, pending_;
};

class Unfolding {
public:
    explicit Unfolding(const Structure &structure)
        : structure_(structure), is_fertile_(structure), subtrees_(find_subtrees(structure, Which::kAllNodes)) {
        for (uint32_t i = 0; i < structure.num_nodes; ++i)
            if (structure.nodes[i].is_anchor) anchors_.push_back(i);
        for (uint32_t i = 0; i < structure.num_leaves; ++i) paths_.push_new(checked(PyList_New(0)));
    }

    nb::object run() {
        arrive(0);
        while (!frames_.empty()) {
            interruptible_step();
            Frame &frame = frames_.back();
            way_.drop_to(frames_.size() - 1);
            const Node node = structure_.nodes[frame.node];
            if (frame.child == node.count) {
                frames_.pop();
                continue;
            }
            const uint32_t next = frame.next;
            way_.push_new(entry_of(node.kind, structure_.refs + subtrees_[frame.node].begin.ref, frame.child++));
            frame.next = subtrees_[next].end.node;
            arrive(next);
        }
        return paths_.take_list();
    }

private:
    struct Frame {
        uint32_t node, child, next;  // the index of the next child, and its position
    };

    void arrive(uint32_t position) {
        const Node met = structure_.nodes[position];
        const uint32_t target = met.is_alias() ? anchors_[met.count] : position;
        const Node node = structure_.nodes[target];
        if (node.is_leaf()) {
            const nb::object path = tuple_of(way_.data(), way_.size());
            checked(PyList_Append(paths_[subtrees_[target].begin.leaf], path.ptr()));
        } else if (is_fertile_[target]) {
            frames_.push({target, 0, target + 1});
        }
    }

    const Structure &structure_;
    const Fertility is_fertile_;
    const std::vector<Subtree> subtrees_;
    std::vector<uint32_t> anchors_;  // their positions
    RefBuffer<16> paths_;
    RefBuffer<24> way_;
    Buffer<Frame, 24> frames_;
};

}  // namespace

nb::object all_paths(const Structure &structure) { return Unfolding(structure).run(); }

}  // namespace pydag
