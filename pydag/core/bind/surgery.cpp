// SPDX-License-Identifier: Apache-2.0
#include "bind/bind.h"
#include "bind/operation.h"
#include "rewrites/replace.h"
#include "rewrites/retie.h"
#include "rewrites/tie.h"
#include "walks/update.h"

namespace pydag {
namespace {

// (tree, paths)
nb::object tie_tree(Arguments a, const FlattenOptions &options) { return tie(a[0], a[1], options); }

// (tree, paths, copy_leaf)
nb::object untie_tree(Arguments a, const FlattenOptions &options) { return untie(a[0], a[1], a[2], options); }

// (spec, tree, are_equal, combine)
nb::object retie_tree(Arguments a) { return retie(a[0], a[1], a[2], a[3] == Py_None ? nullptr : a[3]); }

// (tree, old, new)
nb::object replace_in_tree(Arguments a, const FlattenOptions &options) { return replace(a[0], a[1], a[2], options); }

// (target, source, writers)
nb::object update_tree(Arguments a, const FlattenOptions &options) {
    update(a[0], a[1], a[2], options);
    return nb::none();
}

const Operation operations[] = {
    operation_of<2, tie_tree>("tie"),       operation_of<3, untie_tree>("untie"),
    operation_of<4, retie_tree>("retie"),   operation_of<3, replace_in_tree>("replace"),
    operation_of<3, update_tree>("update"),
};

}  // namespace

void bind_surgery(nb::module_ &module) { add_operations(module, operations, std::size(operations)); }

}  // namespace pydag
