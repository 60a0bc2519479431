// SPDX-License-Identifier: Apache-2.0
#include "walks/shared_objects.h"

#include "base/interrupt.h"

namespace pydag {

nb::object shared_objects_of(nb::handle tree, const FlattenOptions &options) {
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    const Structure structure = parts.structure();
    nb::object list = checked(PyList_New(0));
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        interruptible_step();
        if (structure.nodes[i].is_anchor) checked(PyList_Append(list.ptr(), objects[i]));
    }
    return checked(PyTuple_Pack(2, parts.take_spec().ptr(), list.ptr()));
}

}  // namespace pydag
