// SPDX-License-Identifier: Apache-2.0
//
// Copies a DAG, with its sharing.
#pragma once

#include "base/constant_size.h"
#include "walks/options.h"

namespace pydag {

// What `copy.deepcopy` gives back as it is.
inline bool is_value(PyObject *leaf) {
    return is_constant(leaf) || PyType_Check(leaf) || PyFunction_Check(leaf) || PyCFunction_CheckExact(leaf) ||
           PyRange_Check(leaf) || leaf == Py_Ellipsis;
}

// New containers, the same leaves.
nb::object copy(nb::handle tree, const FlattenOptions &options);

// The same by the structure that the tree had last. Null if it has another one, if a signal waits, if something is
// wrong, or if it may have only values as leaves and has another one.
nb::object copy_known(nb::handle tree, const FlattenOptions &options, bool only_values);

// New containers and new leaves: what `copy.deepcopy` gives back as it is stays.
// `copier`: `copy.deepcopy`, which gets each leaf that the core can't copy, and a memo that knows the containers.
nb::object deep_copy(nb::handle tree, nb::handle copier, const FlattenOptions &options);

}  // namespace pydag
