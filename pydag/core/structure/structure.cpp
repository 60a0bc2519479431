// SPDX-License-Identifier: Apache-2.0
#include "structure/structure.h"

#include "base/error.h"

namespace pydag {

// GCOVR_EXCL_START: no test has the memory for four billion nodes
void StructureBuilder::fail_too_many_nodes() {
    fail(PyExc_OverflowError, "a structure can't have more than %zu nodes", size_t{UINT32_MAX - 1});
}
// GCOVR_EXCL_STOP

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
