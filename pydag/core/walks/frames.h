// SPDX-License-Identifier: Apache-2.0
//
// The open containers of a walk, the root first. A container is open until all of its children have been
// taken from the stack and walked.
#pragma once

#include "structure/paths.h"

namespace pydag {

struct Frame {
    uint32_t node;  // its position in the structure
    bool is_registered;
    bool is_callback;        // registered, with a flatten function
    bool leaves_are_values;  // its leaves have no identity
    size_t base;             // the height of the stack without its children
    PyObject *untracked;     // the container itself, if it is registered and has no identity; else null
};

class Frames : public Buffer<Frame, 24> {
public:
    // The first frame stands for the outside of the root.
    Frames() { push({0, false, false, false, 0, nullptr}); }

    // Whether the container at this position is open. The nodes ascend: it is found by bisection.
    bool is_open(uint32_t node) const {
        const Frame *const end = data() + size();
        const auto is_before = [](const Frame &frame, uint32_t position) { return frame.node < position; };
        const Frame *const found = std::lower_bound(data() + 1, end, node, is_before);
        return found != end && found->node == node;
    }

    // The way to the node that is being visited, the stack below which is `height` high; with
    // `stop`, to that open container. It ends at a container without children.
    Steps steps(const Node *nodes, PyObject *const *refs, size_t height, uint32_t stop = UINT32_MAX) const {
        Steps path;
        uint32_t node = 0;
        for (size_t i = 1; i < size() && (*this)[i].node != stop && nodes[(*this)[i].node].count > 0; ++i) {
            for (; node < (*this)[i].node; ++node) refs += num_refs(nodes[node]);
            const size_t rest = (i + 1 < size() ? (*this)[i + 1].base : height) - (*this)[i].base;
            path.push_back(step_of(nodes[node].kind, refs, static_cast<uint32_t>(nodes[node].count - 1 - rest)));
        }
        return path;
    }
};

}  // namespace pydag
