// SPDX-License-Identifier: Apache-2.0
#include "walks/copy_listeners.h"

#include "base/constants.h"
#include "base/error.h"

#include <algorithm>

namespace pydag {

void tell_copy_listeners(const Structure &structure, nb::handle tree, nb::handle made) {
    if (PyList_GET_SIZE(constants.copy_listeners) == 0) [[likely]]
        return;
    const Node *const nodes = structure.nodes, *const end = nodes + structure.num_nodes;
    const auto has = [&](auto is_one) { return std::any_of(nodes, end, is_one); };
    if (!has([](Node node) { return node.is_none(); }) || !has([](Node node) { return is_registered(node.kind); }))
        return;
    const nb::object listeners = checked(PyList_AsTuple(constants.copy_listeners));  // one may remove itself
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(listeners.ptr()); ++i)
        call(PyTuple_GET_ITEM(listeners.ptr(), i), tree, made);
}

}  // namespace pydag
