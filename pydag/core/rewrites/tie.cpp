// SPDX-License-Identifier: Apache-2.0
#include "rewrites/tying.h"

#include "base/equality.h"
#include "base/pair_set.h"
#include "base/tuples.h"
#include "structure/node_difference.h"
#include "structure/paths.h"
#include "structure/select.h"

namespace pydag {
namespace {

// The child of a node under an entry; UINT32_MAX if it has none.
uint32_t find_child(const IndexedStructure &tree, uint32_t position, nb::handle entry) {
    const Node node = tree.node(position);
    uint32_t child = position + 1;
    for (uint32_t i = 0; i < num_children(node); ++i, child = tree.behind(child)) {
        interruptible_step();
        const nb::object own = entry_of(node.kind, tree.refs(position), i);
        if (are_equal_objects(own, entry)) return child;
    }
    return UINT32_MAX;
}

// The first few entries of a node, in words.
std::string entries_text(const IndexedStructure &tree, uint32_t position) {
    constexpr uint32_t kShown = 8;
    const Node node = tree.node(position);
    const uint32_t count = num_children(node);
    if (count == 0) return "has no children";
    std::string text = count == 1 ? "has the child " : "has the children ";
    for (uint32_t i = 0; i < std::min(count, kShown); ++i)
        text += (i ? ", " : "") + text_of(short_repr(entry_of(node.kind, tree.refs(position), i)));
    return count > kShown ? text + " and " + std::to_string(count - kShown) + " more" : text;
}

// The position of the slot to which a path, a tuple of entries, leads. Entries are compared by identity, then `==`.
uint32_t find_slot(const IndexedStructure &tree, nb::handle path) {
    uint32_t slot = 0;
    if (!is_filled(path)) fail_unfilled();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(path.ptr()); ++i) {
        const uint32_t position = tree.resolve(slot);
        slot = find_child(tree, position, PyTuple_GET_ITEM(path.ptr(), i));
        if (slot != UINT32_MAX) continue;
        const std::string there = path_of(tree.structure, position);
        fail(PyExc_ValueError, "the tree has nothing at the path %U\n  %s %s.", short_repr(path).ptr(), there.c_str(),
             entries_text(tree, position).c_str());
    }
    return slot;
}

}  // namespace

std::vector<uint32_t> find_slots(const IndexedStructure &tree, nb::handle paths) {
    std::vector<uint32_t> slots;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(paths.ptr()); ++i)
        slots.push_back(find_slot(tree, PyTuple_GET_ITEM(paths.ptr(), i)));
    return slots;
}

namespace {

// Leaves without identity can't be tied: each slot has a leaf of its own.
void check_not_values(const IndexedStructure &tree, const std::vector<uint32_t> &slots) {
    const nb::object values = value_leaves(tree.structure);
    if (PyTuple_GET_SIZE(values.ptr()) == 0) return;
    for (const uint32_t slot : slots) {
        const uint32_t node = tree.resolve(slot);
        if (!tree.node(node).is_leaf()) continue;
        const nb::int_ leaf(tree.leaf(node));
        if (!checked(PySequence_Contains(values.ptr(), leaf.ptr()))) continue;
        fail(PyExc_ValueError,
             "the leaf at %s has no identity, so it can't be tied: only its owner can\n"
             "  Tie the objects that hold the arrays, such as Variables of NNX, by their paths.",
             path_to(tree, slot).c_str());
    }
}

// Checks that two parts of a tree have the same nodes, and that arrays have the same shapes; the sharing may differ.
// Each pair of nodes is compared once.
void check_same_nodes(const IndexedStructure &tree, const Leaves &leaves, uint32_t first, uint32_t other) {
    std::vector<std::pair<uint32_t, uint32_t>> pending = {{first, other}};
    PairSet<uint32_t, uint32_t> seen;
    while (!pending.empty()) {
        interruptible_step();
        const auto [slot_a, slot_b] = pending.back();
        pending.pop_back();
        const uint32_t a = tree.resolve(slot_a), b = tree.resolve(slot_b);
        if (a == b || !seen.add(a, b)) continue;
        if (!are_alike(tree.node(a), tree.refs(a), tree.node(b), tree.refs(b))) {
            const Words words = difference(tree.node(a), tree.refs(a), tree.node(b), tree.refs(b));
            fail(PyExc_ValueError,
                 "objects that are tied must have the same structure\n  %s: %s\n  %s: %s\n"
                 "  Put a part of another structure there with dag_replace.",
                 path_to(tree, slot_a).c_str(), words.first.c_str(), path_to(tree, slot_b).c_str(),
                 words.second.c_str());
        }
        if (tree.node(a).is_leaf()) {
            const nb::object one = nb::borrow(leaves[tree.leaf(a)]), two = nb::borrow(leaves[tree.leaf(b)]);
            if (differ_in_shape(one, two))
                fail(PyExc_ValueError,
                     "arrays that are tied must have one shape\n  %s: %U\n  %s: %U\n"
                     "  Put an array of another shape there with dag_replace.",
                     path_to(tree, slot_a).c_str(), short_repr(one).ptr(), path_to(tree, slot_b).c_str(),
                     short_repr(two).ptr());
        }
        uint32_t slot = b + 1;
        tree.for_each_slot(a, [&](uint32_t own) {
            pending.emplace_back(own, slot);
            slot = tree.behind(slot);
        });
    }
}

}  // namespace

nb::object tie(nb::handle root, nb::handle paths, const FlattenOptions &options) {
    Flattened parts(root, options);
    const Structure structure = parts.structure();
    const IndexedStructure tree(structure);
    const std::vector<uint32_t> slots = find_slots(tree, paths);
    check_not_values(tree, slots);
    const uint32_t kept = tree.resolve(slots.front());
    Redirects redirects;
    for (const uint32_t slot : slots)
        if (tree.resolve(slot) != kept) redirects.insert({slot, {kept, false}});
    // The search for cycles comes first: an object never has the structure of a part of itself, so `check_same_nodes`
    // would report the wrong error.
    Tying walk(tree, parts.leaves(), options, redirects);
    walk.run();
    for (const auto &[slot, redirect] : redirects) check_same_nodes(tree, parts.leaves(), kept, slot);
    return walk.build();
}

}  // namespace pydag
