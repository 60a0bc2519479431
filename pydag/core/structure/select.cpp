// SPDX-License-Identifier: Apache-2.0
#include "structure/select.h"

#include "structure/cursor.h"
#include "structure/downward_order.h"
#include "structure/node_refs.h"
#include "structure/path_pattern.h"
#include "structure/paths.h"

#include <unordered_map>

namespace pydag {
namespace {

// A list of what `is_meant(position)` says of each leaf.
template <class IsMeant>
nb::object flags_of_leaves(const Structure &structure, IsMeant is_meant) {
    nb::object flags = checked(PyList_New(structure.num_leaves));
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        if (!at.node().is_leaf()) continue;
        PyList_SET_ITEM(flags.ptr(), at.leaf(), incref(is_meant(at.position()) ? Py_True : Py_False));
    }
    return flags;
}

class PathSearch {
public:
    using State = PathPattern::State;

    PathSearch(const Structure &structure, nb::handle pattern, uint32_t depth)
        : structure_(structure),
          order_(structure),
          pattern_(pattern),
          states_(structure.num_nodes, PathPattern::kNothing),
          is_root_(structure.num_nodes) {
        std::vector<uint32_t> levels(structure.num_nodes);
        for (uint32_t i = 0; i < structure.num_nodes; ++i) {
            if (i > 0) levels[i] = levels[order_.link(i).parent] + 1;
            is_root_[i] = levels[i] == depth;
        }
    }

    nb::object found() {
        order_.run([&](uint32_t position, uint32_t anchor) {
            State state = states_[position];
            if (is_root_[position]) state = pattern_.either(state, pattern_.start());
            if (position > 0) state = pattern_.either(state, after_step(position));
            states_[position] = state;
            if (anchor == position) return;
            states_[anchor] = pattern_.either(states_[anchor], state);
            // Where paths begin at an alias, they begin at the anchor, too.
            if (is_root_[position]) is_root_[anchor] = true;
        });
        return flags_of_leaves(structure_, [&](uint32_t i) { return pattern_.accepts(states_[i]); });
    }

private:
    // What tells the state after a step: nodes of one kind with the same keys have the same steps.
    struct StepFrom {
        PyObject *keys;  // of the parent, where it has any
        Kind kind;       // its own
        State state;
        uint32_t child;
        bool operator==(const StepFrom &) const = default;
    };
    struct Hash {
        size_t operator()(const StepFrom &from) const {
            return (hash_address(from.keys) ^ from.state) * 31 + from.child;
        }
    };

    State after_step(uint32_t position) {
        const DownwardOrder::Link &link = order_.link(position);
        const State state = states_[link.parent];
        if (state == PathPattern::kNothing) return state;
        const Kind kind = structure_.nodes[link.parent].kind;
        PyObject *const *const refs = order_.link(link.parent).refs;
        if (!has_keys(kind) || is_root_[link.parent])
            return after_step(step_of(kind, refs, link.child), state, is_root_[link.parent]);
        const StepFrom from{keys_box_of(kind, refs), kind, state, link.child};
        if (const auto known = known_.find(from); known != known_.end()) return known->second;
        const State after = after_step(step_of(kind, refs, link.child), state, false);
        known_.emplace(from, after);
        return after;
    }

    State after_step(const Step &step, State state, bool is_from_root) {
        const nb::object text = step_text(step);
        const State after = pattern_.advance(state, text);
        if (!is_from_root || PyUnicode_READ_CHAR(text.ptr(), 0) != '.') return after;
        return pattern_.either(after, pattern_.advance(pattern_.start(), step.entry));
    }

    const Structure &structure_;
    const DownwardOrder order_;
    PathPattern pattern_;
    std::vector<State> states_;  // what has matched on the paths to each node
    std::vector<bool> is_root_;
    std::unordered_map<StepFrom, State, Hash> known_;
};

}  // namespace

nb::object leaves_by_path(const Structure &structure, nb::handle pattern, uint32_t depth) {
    return PathSearch(structure, pattern, depth).found();
}

nb::object leaves_below(const Structure &structure, nb::handle is_meant) {
    std::unordered_map<PyObject *, bool> known;  // of classes, which the structure keeps alive
    std::vector<bool> is_below(structure.num_nodes);
    const auto is_class_meant = [&](Kind kind, PyObject *const *refs) {
        const nb::object type = type_of(kind, refs);
        const auto [found, is_new] = known.try_emplace(type.ptr(), false);
        if (is_new) found->second = checked(PyObject_IsTrue(call(is_meant, type).ptr())) != 0;
        return found->second;
    };
    const DownwardOrder order(structure);
    order.run([&](uint32_t position, uint32_t anchor) {
        const Node node = structure.nodes[position];
        if (is_below[order.link(position).parent]) is_below[position] = true;
        else if (!node.is_leaf() && !node.is_alias() && is_class_meant(node.kind, order.link(position).refs))
            is_below[position] = true;
        if (is_below[position]) is_below[anchor] = true;
    });
    return flags_of_leaves(structure, [&](uint32_t i) { return is_below[i]; });
}

}  // namespace pydag
