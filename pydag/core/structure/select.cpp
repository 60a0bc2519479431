// SPDX-License-Identifier: Apache-2.0
#include "structure/select.h"

#include "base/interrupt.h"
#include "base/tuples.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/path_pattern.h"
#include "structure/paths.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace pydag {
namespace {

// The nodes of a structure in an order in which each comes after its parent, and an anchor also after its aliases. So
// information that is handed down a DAG has arrived by all paths when it is a node's turn, in one step for each edge.
class DownwardOrder {
public:
    struct Link {
        PyObject *const *refs;  // those of the node
        uint32_t parent;        // its position; the root is its own parent
        uint32_t child;         // which child of the parent the node is
    };

    explicit DownwardOrder(const Structure &structure) : structure_(structure) {
        struct Around {
            uint32_t position, next;  // the number of the next child
        };
        Nesting<Around> around;
        links_.reserve(structure.num_nodes), closed_.reserve(structure.num_nodes);
        for (Cursor at(structure); at.is_at_node(); at.step()) {
            interruptible_step();
            const Node node = at.node();
            if (around.empty()) links_.push_back({at.refs(), 0, 0});
            else links_.push_back({at.refs(), around.innermost().position, around.innermost().next++});
            if (node.is_anchor) anchors_.push_back(at.position());
            around.add({at.position(), 0}, num_children(node), [&](Around done) { closed_.push_back(done.position); });
        }
    }

    const Link &link(uint32_t position) const { return links_[position]; }
    // Calls `visit(position, anchor)` for each node in this order. `anchor`: for an alias the position of its
    // anchor, for other nodes their own.
    template <class Visit>
    void run(Visit visit) const {
        for (auto next = closed_.rbegin(); next != closed_.rend(); ++next) {
            interruptible_step();
            const Node node = structure_.nodes[*next];
            visit(*next, node.is_alias() ? anchors_[node.count] : *next);
        }
    }

private:
    const Structure &structure_;
    std::vector<Link> links_;        // by position
    std::vector<uint32_t> anchors_;  // their positions, by number
    std::vector<uint32_t> closed_;   // positions in the order in which the nodes end
};

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

using Owners = uint8_t;  // the kinds of owner that a node has along its paths, as bits
constexpr Owners kModule = 1, kOther = 2;

// Whether some node is of a class that is registered with this flag.
bool has_class(const Structure &structure, bool Registration::*flag) {
    return std::any_of(structure.refs, structure.refs + structure.num_refs,
                       [=](PyObject *ref) { return RegistrationBox::check(ref) && RegistrationBox::of(ref).*flag; });
}

// What each node has along its paths.
std::vector<Owners> owners_of(const Structure &structure) {
    const DownwardOrder order(structure);
    std::vector<Owners> owners(structure.num_nodes, 0);
    owners[0] = kOther;
    order.run([&](uint32_t position, uint32_t anchor) {
        if (position > 0) {
            const uint32_t parent = order.link(position).parent;
            const bool is_owner = is_registered(structure.nodes[parent].kind);
            if (!is_owner) owners[position] |= owners[parent];
            else owners[position] |= node_registration(order.link(parent).refs).is_module ? kModule : kOther;
        }
        owners[anchor] |= owners[position];
    });
    return owners;
}

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
        if (is_new && PyType_Check(is_meant.ptr()))
            found->second = checked(PyObject_IsSubclass(type.ptr(), is_meant.ptr())) != 0;
        else if (is_new) found->second = checked(PyObject_IsTrue(call(is_meant, type).ptr())) != 0;
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

nb::object value_leaves(const Structure &structure) {
    std::vector<uint32_t> values;
    if (has_class(structure, &Registration::leaves_are_values)) {
        const DownwardOrder order(structure);
        std::vector<uint8_t> is_owner(structure.num_nodes, 0);  // of values
        for (Cursor at(structure); at.is_at_node(); at.step()) {
            const uint32_t position = at.position();
            const bool above = position > 0 && is_owner[order.link(position).parent];
            if (at.node().is_leaf() && above) values.push_back(at.leaf());
            else if (!at.node().is_leaf()) is_owner[position] = are_leaves_values(at.node().kind, at.refs(), above);
        }
    }
    return tuple_of_numbers(values);
}

nb::object module_leaves(const Structure &structure) {
    if (!has_class(structure, &Registration::is_module)) return tuple_of(tuple_of({}, 0), tuple_of({}, 0));
    const std::vector<Owners> owners = owners_of(structure);
    std::vector<uint32_t> owned, mixed;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        if (!at.node().is_leaf() || !(owners[at.position()] & kModule)) continue;
        owned.push_back(at.leaf());
        if (owners[at.position()] & kOther) mixed.push_back(at.leaf());
    }
    return tuple_of(tuple_of_numbers(owned), tuple_of_numbers(mixed));
}

}  // namespace pydag
