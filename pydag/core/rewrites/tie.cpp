// SPDX-License-Identifier: Apache-2.0
#include "rewrites/tie.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/pair_set.h"
#include "rewrites/redirect.h"
#include "structure/node_difference.h"
#include "structure/owners.h"
#include "structure/paths.h"
#include "structure/shapes.h"
#include "walks/unflatten.h"

namespace pydag {
namespace {

std::string path_to(const IndexedStructure &tree, uint32_t slot) { return path_of(tree.structure, slot); }

std::vector<uint32_t> find_slots(const IndexedStructure &tree, nb::handle paths) {
    std::vector<uint32_t> slots;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(paths.ptr()); ++i)
        slots.push_back(find_slot(tree, PyTuple_GET_ITEM(paths.ptr(), i)));
    return slots;
}

// Leaves without identity stay two, whatever object they are.
void check_not_values(const IndexedStructure &tree, const std::vector<uint32_t> &slots) {
    const nb::object values = value_leaves(tree.structure);
    if (PyTuple_GET_SIZE(values.ptr()) == 0) return;
    for (const uint32_t slot : slots) {
        const uint32_t node = tree.resolve(slot);
        if (!tree.node(node).is_leaf()) continue;
        const nb::int_ leaf(tree.leaf(node));
        if (!checked(PySequence_Contains(values.ptr(), leaf.ptr()))) continue;
        fail(PyExc_ValueError,
             "what stands at %s has no identity, so it can't be tied: what holds it has\n"
             "  Tie the objects that hold the arrays, such as Variables of NNX, by their paths.",
             path_to(tree, slot).c_str());
    }
}

// Checks that two parts of a tree are structured alike, and that arrays have the same shapes; how they are shared may
// differ. Each pair of nodes is compared once.
void check_alike(const IndexedStructure &tree, const Leaves &leaves, uint32_t first, uint32_t other) {
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
                 "what is tied must be structured alike\n  %s: %s\n  %s: %s\n"
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
    std::unordered_map<uint32_t, Redirect> redirects;
    for (const uint32_t slot : slots)
        if (tree.resolve(slot) != kept) redirects.insert({slot, {kept, false}});
    // Cycles are looked for first: an object never has the structure of a part of itself, so `check_alike` would
    // report the wrong error.
    StructureBuilder result;
    Leaves leaves;
    RedirectedWalk(tree, parts.leaves(), options, redirects, nb::handle(), result, leaves).run();
    for (const auto &[slot, redirect] : redirects) check_alike(tree, parts.leaves(), kept, slot);
    return unflatten(result.view(), leaves.data());
}

nb::object untie(nb::handle root, nb::handle paths, nb::handle copy_leaf, const FlattenOptions &options) {
    Flattened parts(root, options);
    const Structure structure = parts.structure();
    const IndexedStructure tree(structure);
    std::unordered_map<uint32_t, Redirect> redirects;
    std::unordered_map<uint32_t, uint32_t> num_slots, num_named, first_named;  // by node
    for (uint32_t i = 0; i < structure.num_nodes; ++i) ++num_slots[tree.resolve(i)];
    for (const uint32_t slot : find_slots(tree, paths)) {
        const uint32_t node = tree.resolve(slot);
        if (!redirects.insert({slot, {node, true}}).second) continue;  // the paths name this slot twice
        first_named.emplace(node, slot);
        ++num_named[node];
    }
    for (const auto &[node, slot] : first_named)
        if (num_named[node] == num_slots[node]) redirects.erase(slot);
    StructureBuilder result;
    Leaves leaves;
    RedirectedWalk(tree, parts.leaves(), options, redirects, copy_leaf, result, leaves).run();
    return unflatten(result.view(), leaves.data());
}

}  // namespace pydag
