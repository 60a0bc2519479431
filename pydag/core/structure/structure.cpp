// SPDX-License-Identifier: Apache-2.0
#include "structure/structure.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "structure/cursor.h"

namespace pydag {

void StructureBuilder::fail_too_many_nodes() {
    fail(PyExc_OverflowError, "a structure can't have more than %zu nodes", size_t{UINT32_MAX - 1});
}

std::vector<Subtree> find_subtrees(const Structure &structure) {
    std::vector<Subtree> subtrees;
    Nesting<uint32_t> around;
    for (Cursor at(structure); at.is_at_node();) {
        interruptible_step();
        const Node node = at.node();
        const uint32_t position = at.position();
        subtrees.push_back({at.extent(), at.extent(), 0});
        at.step();
        around.add(position, num_children(node),
                   [&](uint32_t done) { subtrees[done].end = at.extent(), subtrees[done].next_number = at.number(); });
    }
    return subtrees;
}

void number_anchors(StructureBuilder &builder) {
    Buffer<uint32_t, 64> numbers;
    const size_t size = builder.nodes.size();
    numbers.extend(size);
    for (size_t i = 0; i < size; ++i) {
        Node &node = builder.nodes[i];
        if (node.is_anchor) numbers[i] = builder.num_shared++;
        if (node.is_alias()) node.count = numbers[node.count];
    }
}

}  // namespace pydag
