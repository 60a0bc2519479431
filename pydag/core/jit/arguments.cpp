// SPDX-License-Identifier: Apache-2.0
#include "jit/arguments.h"

#include "base/same_key.h"
#include "structure/node_refs.h"
#include "walks/leaf_class.h"

#include <algorithm>

namespace pydag {
namespace {

constexpr uint32_t kMostBare = 16;  // they are compared with one another

bool are_distinct_leaves(const Leaves &values, const FlattenOptions &options) {
    LeafClass leaf_class;
    for (size_t i = 0; i < values.size(); ++i) {
        PyObject *const *const end = values.data() + i;
        if (!leaf_class.is_of_leaves(Py_TYPE(values[i]), options) || std::find(values.data(), end, values[i]) != end)
            return false;
    }
    return true;
}

}  // namespace

bool is_bare(nb::handle tree, const Structure &structure) {
    constexpr uint32_t kNumOthers = 3;  // the tuple and the dict of the arguments, and the tuple of both
    return structure.num_leaves <= kMostBare && structure.num_nodes == structure.num_leaves + kNumOthers &&
           PyTuple_CheckExact(PyTuple_GET_ITEM(tree.ptr(), 0)) && PyDict_CheckExact(PyTuple_GET_ITEM(tree.ptr(), 1));
}

bool are_bare_arguments(const CallArguments &arguments, const Structure &structure, const FlattenOptions &options) {
    if (structure.nodes[1].count != arguments.num_by_position() || structure.num_leaves != arguments.values.size())
        return false;
    const Keys &keys = MappingRefs{structure.refs}.keys();
    PyObject *const *const names = arguments.names.data();
    return keys.size() == arguments.names.size() && keys.in_order &&
           std::equal(names, names + arguments.names.size(), keys.inserted(), is_same_key) &&
           are_distinct_leaves(arguments.values, options);
}

}  // namespace pydag
