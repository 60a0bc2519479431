// SPDX-License-Identifier: Apache-2.0
//
// Writes other leaves into the objects of a DAG whose structure is known.
#pragma once

#include "base/error.h"
#include "structure/structure.h"
#include "types/registry.h"

namespace pydag {

struct NewLeaves {
    const Structure &structure;  // of the target
    PyObject *const *leaves;     // the new leaf in the place of each; null where the leaf stays
    Namespace &space;
    // Says how instances of a class are written that a flatten function opens. Called with the class, it returns a
    // function of the instance and the tuple of its new children, or None if they can't be written. Null: none can.
    nb::handle writers;
    // Whether objects may be written whose class is registered with another library by its fields.
    bool writes_foreign = false;
    Roots roots;  // what the target is called in messages
};

// All containers of the target stay the same objects, except tuples, which are replaced by new ones where they are
// items of something that can be changed. All or nothing: everything that may fail is tried before the first write,
// and if a write fails nevertheless, the others are undone.
//
// ValueError if the target has another structure. TypeError if an object would have to change that can't be written.
void write_leaves(nb::handle target, const NewLeaves &given);

}  // namespace pydag
