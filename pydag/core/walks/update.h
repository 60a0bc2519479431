// SPDX-License-Identifier: Apache-2.0
//
// Writes other leaves into the objects of a DAG. All containers stay the same objects, except tuples, which are
// replaced by new ones. All or nothing: everything that may fail is tried before the first write, and if a write fails
// nevertheless, the others are undone.
#pragma once

#include "walks/flatten.h"

namespace pydag {

struct NewLeaves {
    const Structure &structure;  // of the target
    PyObject *const *leaves;     // the new leaf in the place of each; null where the leaf stays
    Namespace &space;
    // Finds the writer of a class that a flatten function opens. Called with the class, it returns a function of the
    // instance and the tuple of its new children, or None if instances can't be written. Null: none can.
    nb::handle writers;
    // Whether the instances of a class must stay as they are, though the core could write their fields: called with the
    // class. Null: all may change.
    nb::handle is_frozen;
    // Whether to write objects of classes that are registered with another library by their fields.
    bool writes_foreign = false;
    Roots roots;  // the names of the target in messages
};

// Fills `objects`, empty before, with the object of the target at each position. ValueError if the target has another
// structure. TypeError if an object would have to change that can't be written.
void write_leaves(nb::handle target, const NewLeaves &given, NodeObjects &objects);

// Replaces each leaf of `target` by the leaf that `source` has for it. `writers` and `is_frozen` as above; None: none.
//
// TypeError, too, for a root that is a leaf or a tuple; ValueError and SharingError if the trees don't fit.
void update(nb::handle target, nb::handle source, nb::handle writers, nb::handle is_frozen,
            const FlattenOptions &options);

}  // namespace pydag
