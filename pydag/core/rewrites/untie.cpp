// SPDX-License-Identifier: Apache-2.0
#include "rewrites/tying.h"

#include "base/interrupt.h"

#include <algorithm>

namespace pydag {
namespace {

// How many nodes the unfolded tree has; from `most` on the numbers are too small.
uint64_t num_unfolded(const IndexedStructure &tree, uint64_t most) {
    std::vector<uint64_t> below(tree.structure.num_nodes, 1);
    Nesting<uint32_t> around;
    for (uint32_t i = 0; i < tree.structure.num_nodes; ++i) {
        interruptible_step();
        if (tree.node(i).is_alias()) below[i] = below[tree.resolve(i)];
        around.add(i, num_children(tree.node(i)), [&](uint32_t done) {
            if (around.empty()) return;
            uint64_t &sum = below[around.innermost()];
            sum = std::min(most, sum + below[done]);
        });
    }
    return below[0];
}

// Every slot gets its own, but for the first of each object.
Redirects untie_all(const IndexedStructure &tree) {
    constexpr uint64_t kMostAdded = 1 << 24;
    const uint32_t count = tree.structure.num_nodes;
    if (num_unfolded(tree, count + kMostAdded) == count + kMostAdded)
        fail(PyExc_ValueError,
             "untied, the tree would have more than %zu further nodes\n"
             "  Untie single paths: pydag.untie(tree, path).",
             static_cast<size_t>(kMostAdded));
    Redirects redirects;
    for (uint32_t i = 0; i < count; ++i)
        if (tree.node(i).is_alias()) redirects.insert({i, {tree.resolve(i), true}});
    return redirects;
}

// Whether something below the nodes that are copied has a slot elsewhere: then the copies untie it. Each of them has
// one slot.
bool is_shared_below(const IndexedStructure &tree, const Redirects &redirects) {
    std::vector<uint32_t> around;                            // the copied nodes around a node
    std::vector<uint32_t> within(tree.structure.num_nodes);  // the innermost of them, counted from 1
    for (uint32_t i = 0; i < tree.structure.num_nodes; ++i) {
        interruptible_step();
        while (!around.empty() && i >= tree.behind(around.back())) around.pop_back();
        if (redirects.contains(i)) around.push_back(i);
        within[i] = around.empty() ? 0 : around.back() + 1;
        if (tree.node(i).is_alias() && within[i] != within[tree.resolve(i)]) return true;
    }
    return false;
}

[[noreturn]] void fail_not_shared(const IndexedStructure &tree, uint32_t slot) {
    const std::string path = path_to(tree, slot);
    uint32_t shared = 0;  // the innermost shared node around the slot
    for (const uint32_t anchor : tree.anchors)
        if (anchor < slot && slot < tree.behind(anchor)) shared = anchor;
    const std::string cure = shared ? "It lies within " + path_to(tree, shared) + ", which is shared: untie that first."
                                    : "pydag.untie(tree), without a path, unties all that is shared.";
    fail(PyExc_ValueError,
         "nothing is untied: what is at %s is at no other path, and shares nothing with the rest of the tree\n  %s",
         path.c_str(), cure.c_str());
}

// These slots get their own. If they are all slots of an object, the first keeps it.
Redirects untie_slots(const IndexedStructure &tree, const std::vector<uint32_t> &slots) {
    Redirects redirects;
    std::unordered_map<uint32_t, uint32_t> num_slots, num_named, first_named;  // by node
    for (uint32_t i = 0; i < tree.structure.num_nodes; ++i) ++num_slots[tree.resolve(i)];
    for (const uint32_t slot : slots) {
        const uint32_t node = tree.resolve(slot);
        if (!redirects.insert({slot, {node, true}}).second) continue;  // the paths name this slot twice
        first_named.emplace(node, slot);
        ++num_named[node];
    }
    bool is_shared = false;
    for (const auto &[node, slot] : first_named) {
        is_shared = is_shared || num_slots[node] > 1;
        // What is below a container may be shared, though the container isn't.
        if (num_named[node] == num_slots[node] && (num_slots[node] > 1 || tree.node(node).is_leaf()))
            redirects.erase(slot);
    }
    if (!is_shared && !is_shared_below(tree, redirects)) fail_not_shared(tree, slots.front());
    return redirects;
}

}  // namespace

nb::object untie(nb::handle root, nb::handle paths, nb::handle copy_leaf, const FlattenOptions &options) {
    Flattened parts(root, options);
    const Structure structure = parts.structure();
    const IndexedStructure tree(structure);
    const bool is_whole = PyTuple_GET_SIZE(paths.ptr()) == 0;
    const Redirects redirects = is_whole ? untie_all(tree) : untie_slots(tree, find_slots(tree, paths));
    constexpr uint32_t kMostCopies = 1 << 20;
    Tying walk(tree, parts.leaves(), options, redirects, copy_leaf, is_whole ? UINT32_MAX : kMostCopies);
    walk.run();
    return walk.build();
}

}  // namespace pydag
