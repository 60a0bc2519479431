// SPDX-License-Identifier: Apache-2.0
//
// Walks a tree along a structure that it probably has.
//
// Most trees have been seen before. As long as each object is what the structure says, it is enough to
// look at it: no Python code runs, so with the GIL nothing changes meanwhile, nothing needs to be owned, and
// nothing is written but the leaves. At the first difference the walk gives up.
#pragma once

#include "base/held.h"
#include "walks/flatten_pure.h"
#include "walks/node_answers.h"

namespace pydag {

// Whether flattening `tree` with these options gives exactly this structure; if so, `leaves`, empty
// before, gets the leaves. False also if only Python code could tell.
bool flatten_known(const Structure &structure, PyObject *tree, const FlattenOptions &options, Leaves &leaves,
                   NodeObjects *objects);

// The same for a structure with nodes that must be asked: with `answers.other_refs` in the place of its own references
// it is the structure of the tree. If not, the next walk needs `answers`.
bool flatten_asking(const Structure &structure, PyObject *tree, const FlattenOptions &options, Leaves &leaves,
                    NodeObjects *objects, NodeAnswers &answers);

// The object at each node of a structure, by its position; borrowed where nobody can change the tree meanwhile.
using BorrowedObjects = HeldArray<192>;
// The same, for a walk that needs the objects: `objects`, empty before, gets them. With the GIL they are valid until
// Python code runs.
bool look_at_known(const Structure &structure, PyObject *tree, const FlattenOptions &options, BorrowedObjects &objects);

// Whether `tree` holds one object for each leaf of the structure, in nodes that are opened as the
// structure says, and the same object at all occurrences of a shared object. `leaves` as above.
//
// `space`: null if the classes in the structure have just been looked up. Otherwise the class of each object
// of a kind that has many classes is looked up in it again, among the classes that are known already.
bool match_known(const Structure &structure, PyObject *tree, Leaves &leaves, Namespace *space);

}  // namespace pydag
