// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/interrupt.h"
#include "base/tuples.h"
#include "structure/indexed_structure.h"
#include "structure/paths.h"

namespace pydag {
namespace {

class Unfolding {
public:
    explicit Unfolding(const Structure &structure) : tree_(structure), leading_(structure.num_nodes + 1) {
        for (uint32_t i = 0; i < structure.num_nodes; ++i) {
            const Node node = structure.nodes[i];
            const bool leads = node.is_leaf() || (node.is_alias() && leads_to_leaves(tree_.anchors[node.count]));
            leading_[i + 1] = leading_[i] + leads;
        }
        for (uint32_t i = 0; i < structure.num_leaves; ++i) paths_.push_new(checked(PyList_New(0)));
    }

    nb::object run() {
        arrive(0);
        while (!open_.empty()) {
            interruptible_step();
            Open &open = open_.back();
            way_.drop_to(open_.size() - 1);
            const Node node = tree_.node(open.position);
            if (open.child == node.count) {
                open_.pop();
                continue;
            }
            const uint32_t slot = open.slot;
            way_.push_new(entry_of(node.kind, tree_.refs(open.position), open.child++));
            open.slot = tree_.behind(slot);
            arrive(tree_.resolve(slot));
        }
        return paths_.take_list();
    }

private:
    struct Open {
        uint32_t position, child, slot;  // the number and the slot of the next child
    };

    // Whether there are leaves in a subtree, or aliases that lead to some.
    bool leads_to_leaves(uint32_t position) const { return leading_[tree_.behind(position)] > leading_[position]; }

    void arrive(uint32_t position) {
        if (tree_.node(position).is_leaf()) {
            const nb::object path = tuple_of(way_.data(), way_.size());
            checked(PyList_Append(paths_[tree_.leaf(position)], path.ptr()));
        } else if (leads_to_leaves(position)) {
            open_.push({position, 0, position + 1});
        }
    }

    const IndexedStructure tree_;
    std::vector<uint32_t> leading_;  // how many leaves, and aliases that lead to leaves, lie before each position
    RefBuffer<16> paths_;
    RefBuffer<24> way_;
    Buffer<Open, 24> open_;
};

}  // namespace

nb::object all_paths(const Structure &structure) { return Unfolding(structure).run(); }

}  // namespace pydag
