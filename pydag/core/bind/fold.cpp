// SPDX-License-Identifier: Apache-2.0
#include "walks/fold.h"
#include "bind/bind.h"
#include "bind/method.h"
#include "walks/intern.h"
#include "walks/rewrite.h"

namespace pydag {
namespace {

// (function, tree, down, init, is_leaf, none_is_leaf, namespace, identity); down: None where there is
// no context.
nb::object fold_tree(Arguments a) {
    const FlattenOptions options = FlattenOptions::parse(a[4], a[5], a[6], a[7]);
    if (a[2] != Py_None) return fold_with_context(a[0], a[1], a[2], a[3], options);
    if (a[3] != Py_None)
        fail(PyExc_TypeError, "init is the context of the root: it needs down, which gives that of the others");
    return fold(a[0], a[1], options);
}

// (function, tree, is_leaf, none_is_leaf, namespace, identity)
nb::object rewrite_tree(Arguments a) { return rewrite(a[0], a[1], FlattenOptions::parse(a[2], a[3], a[4], a[5])); }

// (tree, is_leaf, none_is_leaf, namespace, identity)
nb::object intern_tree(Arguments a) { return intern(a[0], FlattenOptions::parse(a[1], a[2], a[3], a[4])); }

PyMethodDef operations[] = {
    method<8, fold_tree>("fold"),
    method<6, rewrite_tree>("rewrite"),
    method<5, intern_tree>("intern"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_folds(nb::module_ &module) { checked(PyModule_AddFunctions(module.ptr(), operations)); }

}  // namespace pydag
