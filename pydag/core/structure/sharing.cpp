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
    nb::object result = checked(PyList_New(0));
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        if (!node.is_anchor) continue;
        const nb::object type = node.is_leaf() ? nb::none() : type_of(node.kind, at.refs());
        const nb::object row = nb::make_tuple(at.number(), tree_kind(node.kind), type);
        checked(PyList_Append(result.ptr(), row.ptr()));
    }
    return result;
}

}  // namespace pydag
