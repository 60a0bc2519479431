// SPDX-License-Identifier: Apache-2.0
#include "rewrites/tie.h"
#include "walks/unflatten.h"

namespace pydag {

nb::object replace(nb::handle tree, nb::handle old_object, nb::handle new_object, FlattenOptions options) {
    if (options.space->find_class_of(old_object.ptr()).identity == kNoIdentity)
        fail(PyExc_ValueError,
             "%U is a value and has no identity, so no place is its own\n"
             "  Pass the object that is to be replaced, such as tree['layer'], not its path.",
             short_repr(old_object).ptr());
    options.whole = old_object;
    Flattened parts(tree, options);
    Leaves &leaves = parts.leaves();
    bool is_found = false;
    for (size_t i = 0; i < leaves.size(); ++i) {
        if (leaves[i] != old_object.ptr()) continue;
        is_found = true;
        leaves.replace(i, nb::borrow(new_object));
    }
    if (!is_found)
        fail(PyExc_ValueError,
             "the tree doesn't hold the object that is to be replaced: %U\n"
             "  Pass the very object, such as tree['layer']: an equal one is another object.",
             short_repr(old_object).ptr());
    return unflatten(parts.structure(), leaves.data());
}

}  // namespace pydag
