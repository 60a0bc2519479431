// SPDX-License-Identifier: Apache-2.0
#include "structure/sharing.h"

#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/paths.h"

namespace pydag {

size_t num_distinct_nodes(const Structure &structure) {
    size_t count = 0;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) count += !structure.nodes[i].is_alias();
    return count;
}

// Adds up, for each node, the paths below it. The number of an anchor is kept only until its last alias has
// been counted, because such a number may have as many digits as the structure is deep.
nb::object num_paths(const Structure &structure) {
    struct Item {
        uint32_t number;
        bool is_anchor;
    };
    Nesting<Item> around;
    std::vector<nb::object> sums;  // of this node and of those around it
    std::vector<nb::object> known(structure.num_shared);
    std::vector<uint32_t> last_alias(structure.num_shared);
    for (uint32_t i = 0; i < structure.num_nodes; ++i)
        if (structure.nodes[i].is_alias()) last_alias[structure.nodes[i].count] = i;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        if (!node.is_alias()) sums.push_back(nb::int_(node.is_leaf() ? 1 : 0));
        else if (last_alias[node.count] > at.position()) sums.push_back(known[node.count]);
        else sums.push_back(std::move(known[node.count]));
        around.add({at.number(), node.is_anchor}, num_children(node), [&](const Item &done) {
            if (done.is_anchor) known[done.number] = sums.back();
            if (around.empty()) return;
            const nb::object sum = std::move(sums.back());
            sums.pop_back();
            sums.back() = checked(PyNumber_Add(sums.back().ptr(), sum.ptr()));
        });
    }
    return std::move(sums.back());
}

nb::object shared_of(const Structure &structure) {
    std::vector<uint32_t> slots;                                      // the nodes that are shared or aliases
    std::vector<std::vector<size_t>> slots_of(structure.num_shared);  // of each shared object
    std::vector<nb::object> types(structure.num_shared);
    std::vector<nb::handle> kinds(structure.num_shared);
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        if (!node.is_anchor && !node.is_alias()) continue;
        if (node.is_anchor) {
            types[at.number()] = node.is_leaf() ? nb::none() : type_of(node.kind, at.refs());
            kinds[at.number()] = tree_kind(node.kind);
        }
        slots_of[node.is_anchor ? at.number() : node.count].push_back(slots.size());
        slots.push_back(at.position());
    }
    const std::vector<nb::object> paths = slot_paths(structure, slots);
    nb::object result = checked(PyList_New(0));
    for (uint32_t i = 0; i < structure.num_shared; ++i) {
        nb::object own = checked(PyTuple_New(static_cast<Py_ssize_t>(slots_of[i].size())));
        for (size_t j = 0; j < slots_of[i].size(); ++j)
            PyTuple_SET_ITEM(own.ptr(), j, incref(paths[slots_of[i][j]].ptr()));
        const nb::object row = nb::make_tuple(i, kinds[i], types[i], own);
        checked(PyList_Append(result.ptr(), row.ptr()));
    }
    return result;
}

}  // namespace pydag
