// SPDX-License-Identifier: Apache-2.0
//
// Writes other leaves into the objects of a DAG whose structure is known.
#pragma once

#include "structure/structure.h"
#include "types/registry.h"

namespace pydag {

struct NewLeaves {
    const Structure &structure;  // of the target
    PyObject *const *leaves;     // what takes the place of each leaf; null where the leaf stays
    Namespace &space;
    // A function of a class that says how an instance is written that a flatten function opens: as a function
    // of the instance and the tuple of its new children; or None if it can't be written. Null: none can be.
    nb::handle writers;
    // Whether objects are written whose class is registered with another library by its fields.
    bool writes_foreign = false;
    // What is called with the target at the end, and undoes its own work if it fails. Null: nothing.
    nb::handle then;
};

// All containers of the target stay the same objects, except tuples, which are replaced by new ones where they are
// items of something that can be changed. All or nothing: everything that may fail is tried before the first write,
// and if a write fails nevertheless, the others are undone.
//
// ValueError if the target has another structure. TypeError if an object would have to change that can't be written.
void write_leaves(nb::handle target, const NewLeaves &given);

}  // namespace pydag
