// SPDX-License-Identifier: Apache-2.0
#include "structure/sharing.h"

#include "structure/paths.h"

namespace pydag {

size_t num_distinct_nodes(const Structure &structure) {
    size_t count = 0;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) count += structure.nodes[i].kind != Kind::kAlias;
    return count;
}

// Adds up, node by node, what lies below it. What an anchor leads to is kept until its last alias has
// had it: each of these numbers may be as long as the structure is deep.
nb::object num_paths(const Structure &structure) {
    struct Frame {
        uint32_t pending, number;
        bool is_anchor;
        nb::object sum;
    };
    std::vector<Frame> open;
    std::vector<nb::object> known(structure.num_shared);
    std::vector<uint32_t> last_alias(structure.num_shared);
    for (uint32_t i = 0; i < structure.num_nodes; ++i)
        if (structure.nodes[i].kind == Kind::kAlias) last_alias[structure.nodes[i].count] = i;
    uint32_t num_anchors = 0;
    nb::object total = nb::int_(0);
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        const Node node = structure.nodes[i];
        const uint32_t number = node.is_anchor ? num_anchors++ : 0;
        open.push_back({num_children(node), number, node.is_anchor, nb::int_(node.kind == Kind::kLeaf ? 1 : 0)});
        if (node.kind == Kind::kAlias) {
            nb::object &sum = known[node.count];
            open.back().sum = last_alias[node.count] == i ? std::move(sum) : sum;
        }
        while (open.back().pending == 0) {
            const Frame frame = std::move(open.back());
            open.pop_back();
            if (frame.is_anchor) known[frame.number] = frame.sum;
            if (open.empty()) return frame.sum;
            open.back().sum = checked(PyNumber_Add(open.back().sum.ptr(), frame.sum.ptr()));
            --open.back().pending;
        }
    }
    return total;
}

nb::object shared_of(const Structure &structure) {
    std::vector<uint32_t> slots;                                      // the nodes that are shared or aliases
    std::vector<std::vector<size_t>> slots_of(structure.num_shared);  // of each shared object
    std::vector<nb::object> types(structure.num_shared);
    std::vector<nb::handle> kinds(structure.num_shared);
    PyObject *const *refs = structure.refs;
    uint32_t num_anchors = 0;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        const Node node = structure.nodes[i];
        if (node.is_anchor) {
            types[num_anchors] = node.kind == Kind::kLeaf ? nb::none() : type_of(node.kind, refs);
            kinds[num_anchors] = tree_kind(node.kind);
            slots_of[num_anchors++].push_back(slots.size());
        } else if (node.kind == Kind::kAlias) {
            slots_of[node.count].push_back(slots.size());
        }
        if (node.is_anchor || node.kind == Kind::kAlias) slots.push_back(i);
        refs += num_refs(node);
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
