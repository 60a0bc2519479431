// SPDX-License-Identifier: Apache-2.0
#include "structure.h"

#include "error.h"

namespace pydag {

uint32_t Draft::add(Kind kind, uint32_t count) {
    if (nodes.size() >= UINT32_MAX - 1) [[unlikely]]
        fail(PyExc_OverflowError, "a structure can't have more than %zu nodes", size_t{UINT32_MAX - 1});
    nodes.push({kind, false, 0, count});
    return static_cast<uint32_t>(nodes.size() - 1);
}

std::vector<AnchorPlace> find_anchors(const Structure &structure) {
    struct Open {
        uint32_t pending, number;
    };
    std::vector<AnchorPlace> anchors;
    std::vector<Open> open;
    constexpr uint32_t kNone = UINT32_MAX;
    Extent at = {0, 0, 0};
    while (at.node < structure.num_nodes) {
        const Node node = structure.nodes[at.node];
        open.push_back({num_children(node), node.is_anchor ? static_cast<uint32_t>(anchors.size()) : kNone});
        if (node.is_anchor) anchors.push_back({at, at, 0});
        at.ref += num_refs(node);
        at.leaf += node.kind == Kind::kLeaf;
        ++at.node;
        while (!open.empty() && open.back().pending == 0) {
            if (const uint32_t number = open.back().number; number != kNone) {
                anchors[number].end = at;
                anchors[number].next_number = static_cast<uint32_t>(anchors.size());
            }
            open.pop_back();
            if (!open.empty()) --open.back().pending;
        }
    }
    return anchors;
}

void number_anchors(Draft &draft) {
    Buffer<uint32_t, 64> numbers;
    const size_t size = draft.nodes.size();
    numbers.extend(size);
    for (size_t i = 0; i < size; ++i) {
        Node &node = draft.nodes[i];
        if (node.is_anchor) numbers[i] = draft.num_shared++;
        if (node.kind == Kind::kAlias) node.count = numbers[node.count];
    }
}

}  // namespace pydag
