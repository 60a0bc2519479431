// SPDX-License-Identifier: Apache-2.0
//
// Computes a result for each object of a structure, children first. Every slot of a shared object gets the one result
// of that object.
#pragma once

#include "base/interrupt.h"
#include "nodes/open_options.h"
#include "structure/cursor.h"
#include "structure/paths.h"

namespace pydag {

struct VisitedNode {
    Node node;
    PyObject *const *refs;
    uint32_t position;
    uint32_t number;           // its own, if it is an anchor
    const uint32_t *children;  // the position of each child

    // Whether the results for the children are the children themselves. `objects`: the object at each position.
    bool keeps_children(PyObject *const *objects, PyObject *const *results) const {
        return std::equal(children, children + node.count, results,
                          [=](uint32_t child, PyObject *result) { return objects[child] == result; });
    }
};

// Returns the result of the root. `result_of(at, results)` returns that of a node, and takes the results of its
// children, the last ones, off `results`. An error names the path to the node, and `doing`.
template <class ResultOf>
nb::object fold_structure(const Structure &structure, const char *doing, ResultOf result_of,
                          const Roots &roots = Roots()) {
    struct Item {
        PyObject *const *refs;
        uint32_t position, number;
    };
    Stack results;
    Buffer<uint32_t, 192> positions;  // of the nodes of `results`
    RefBuffer<16> anchor_results;     // by number
    for (uint32_t i = 0; i < structure.num_shared; ++i) anchor_results.push_borrowed(Py_None);
    uint32_t visited = 0;
    const auto visit = [&](const Item &item) {
        const Node node = structure.nodes[item.position];
        if (node.is_alias()) {
            results.push_borrowed(anchor_results[node.count]);
            return positions.push(item.position);
        }
        visited = item.position;
        const size_t base = positions.size() - node.count;
        nb::object result =
            result_of(VisitedNode{node, item.refs, item.position, item.number, positions.data() + base}, results);
        if (node.is_anchor) anchor_results.replace(item.number, nb::borrow(result));
        results.push_new(std::move(result));
        positions.resize_down(base);
        positions.push(item.position);
    };
    try {
        Nesting<Item> around;
        for (Cursor at(structure); at.is_at_node(); at.step()) {
            interruptible_step();
            around.add({at.refs(), at.position(), at.number()}, num_children(at.node()), visit);
        }
    } catch (...) {
        rethrow_at(structure, visited, doing, roots);
    }
    return results.pop_owned();
}

}  // namespace pydag
