// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "nodes/build.h"
#include "nodes/node_aux.h"
#include "walks/fold.h"
#include "walks/fold_structure.h"

namespace pydag {
nb::object traverse(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
                    NodeCall how) {
    nb::object next;  // leaf; null behind the last one
    bool is_fetched = false;
    const auto fetch = [&] {
        next = nb::steal(PyIter_Next(leaves.ptr()));
        if (!next.is_valid() && PyErr_Occurred()) nb::raise_python_error();
        is_fetched = true;
    };
    const auto take_leaf = [&] {
        if (!is_fetched) fetch();
        if (!next.is_valid()) fail(PyExc_ValueError, "Too few leaves for PyDagSpec.");
        nb::object result = leaf_function.is_valid() ? call(leaf_function, next) : next;
        fetch();
        return result;
    };
    MadeOnce once;
    once.puts_none = leaf_function.is_valid();
    return fold_structure(structure, "traversing", [&](const VisitedNode &at, Stack &results) {
        const Node node = at.node;
        const size_t base = results.size() - node.count;
        const auto built = [&] { return build_node(node.kind, at.refs, results, base, once); };
        nb::object result;
        if (node.is_leaf()) result = take_leaf();
        else if (!node_function.is_valid()) result = built();
        else if (how == NodeCall::kBuilt) result = call(node_function, built());
        else
            result = call(node_function, type_of(node.kind, at.refs), node_data(node.kind, at.refs),
                          results.take_tuple(base));
        if (at.position == 0 && !is_fetched) fetch();
        if (at.position == 0 && next.is_valid()) fail(PyExc_ValueError, "Too many leaves for PyDagSpec.");
        return result;
    });
}

}  // namespace pydag
