// SPDX-License-Identifier: Apache-2.0
#include "walks/fold.h"
#include "bind/bind.h"
#include "bind/operation.h"
#include "walks/intern.h"
#include "walks/rewrite.h"

namespace pydag {
namespace {

// (function, tree, down, init); down: None where there is no context.
nb::object fold_tree(Arguments a, FlattenOptions options) {
    options.asks_names = false;
    if (a[2] != Py_None) return fold_with_context(a[0], a[1], a[2], a[3], options);
    if (a[3] != Py_None)
        fail(PyExc_TypeError, "init is the context of the root: it needs down, which gives that of the others");
    return fold(a[0], a[1], options);
}

// (function, tree)
nb::object rewrite_tree(Arguments a, FlattenOptions options) {
    options.asks_names = false;
    return rewrite(a[0], a[1], options);
}

// (tree)
nb::object intern_tree(Arguments a, FlattenOptions options) {
    options.asks_names = false;
    return intern(a[0], options);
}

const Operation operations[] = {
    operation_of<4, fold_tree>("fold"),
    operation_of<2, rewrite_tree>("rewrite"),
    operation_of<1, intern_tree>("intern"),
};

}  // namespace

void bind_folds(nb::module_ &module) { add_operations(module, operations, std::size(operations)); }

}  // namespace pydag
