// SPDX-License-Identifier: Apache-2.0
//
// Writes a DAG anew, depth first from the root. The class `Derived` says which node each slot holds from now on.
#pragma once

#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/indexed_structure.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "walks/flatten.h"
#include "walks/walks.h"

#include <map>

namespace pydag {

// A node, or a slot, and the number of the copy in which it is written. Number 0 is the tree itself.
struct Place {
    uint32_t position, copy;
    auto operator<=>(const Place &) const = default;
};

// `Derived` has these functions:
//   Place target_of(Place slot)                    the node that a slot holds
//   uint32_t write(Place node)                     writes a node; returns the node that has its children
//   void fail_cycle(uint32_t slot, uint32_t node)  raises: the node in this slot would contain itself
template <class Derived>
class Redirection {
public:
    Redirection(const IndexedStructure &tree, const Leaves &leaves, const FlattenOptions &options)
        : tree_(tree), leaves_(leaves), options_(options), states_(tree.structure.num_nodes) {}

    void run() {
        Derived &rules = static_cast<Derived &>(*this);
        Buffer<Place, 48> pending;  // the slots to come
        Nesting<uint32_t> around;
        const auto close = [this](uint32_t state) { states_[state].is_open = false; };
        bool has_aliases = false;
        pending.push({0, 0});
        while (!pending.empty()) {
            interruptible_step();
            const Place slot = pending.pop(), node = rules.target_of(slot);
            const uint32_t index = state_of(node);
            State &state = states_[index];
            if (state.is_open) rules.fail_cycle(slot.position, node.position);
            if (state.result != UINT32_MAX && has_identity(node.position)) {
                result_.nodes[state.result].is_anchor = has_aliases = true;
                result_.add(Kind::kAlias, state.result);
                around.add_closed(close);
                continue;
            }
            state = {static_cast<uint32_t>(result_.nodes.size()), true};
            const uint32_t parent = rules.write(node);
            tree_.push_slots(parent, pending, [=](uint32_t child) { return Place{child, node.copy}; });
            around.add(index, num_children(tree_.node(parent)), close);
        }
        if (has_aliases) number_anchors(result_);
        result_.num_leaves = static_cast<uint32_t>(result_leaves_.size());
    }
    // The DAG that `run` has written.
    nb::object build() const { return unflatten(result_.view(), result_leaves_.data()); }

protected:
    uint32_t write_unchanged(uint32_t node) {
        const Node source = tree_.node(node);
        result_.add(source.kind, source.count);
        result_.add_refs(tree_.refs(node), num_refs(source));
        if (source.is_leaf()) result_leaves_.push_borrowed(leaves_[tree_.leaf(node)]);
        return node;
    }
    std::string path_to(uint32_t position) const { return path_of(tree_.structure, position); }

    const IndexedStructure &tree_;
    const Leaves &leaves_;
    const FlattenOptions &options_;
    StructureBuilder result_;
    Leaves result_leaves_;

private:
    struct State {
        uint32_t result = UINT32_MAX;  // its position in the result, once it is written
        bool is_open = false;          // it is being written
    };

    uint32_t state_of(Place node) {
        if (node.copy == 0) return node.position;
        const auto [found, is_new] = states_of_copies_.emplace(node, static_cast<uint32_t>(states_.size()));
        if (is_new) states_.emplace_back();
        return found->second;
    }

    bool has_identity(uint32_t node) const {
        if (!tree_.node(node).is_leaf()) return pydag::has_identity(tree_.node(node).kind, tree_.refs(node));
        return options_.leaf_identity && options_.space->find_class_of(leaves_[tree_.leaf(node)]).identity;
    }

    std::vector<State> states_;  // of the nodes, by position; behind them those of the copies
    std::map<Place, uint32_t> states_of_copies_;
};

}  // namespace pydag
