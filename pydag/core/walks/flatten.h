// SPDX-License-Identifier: Apache-2.0
//
// Takes a DAG apart: its distinct leaves, and its structure. Of the three walks that do it (README.md) two are here:
// along a structure that the tree probably has, and of a tree of which nothing is known; flatten_general.h is the
// third.
#pragma once

#include "base/error.h"
#include "base/held.h"
#include "base/identity_table.h"
#include "nodes/open.h"
#include "spec/cache.h"
#include "walks/options.h"

namespace pydag {

class NodeAnswers;
using Leaves = RefBuffer<96>;

// The object at each node of a structure, by its position; at an alias it is the anchor's.
using NodeObjects = RefBuffer<48>;

// A DAG, taken apart. Raises CycleError for an object that contains itself; whatever a callback
// raises passes through with a note that names the path.
class Flattened {
public:
    // `objects`, where given, receives the objects themselves; `answers`: those of nodes that an earlier walk asked.
    Flattened(nb::handle tree, const FlattenOptions &options, NodeObjects *objects = nullptr,
              NodeAnswers *answers = nullptr);

    Leaves &leaves() { return leaves_; }
    // Whether the structure has nodes that must be asked.
    bool must_ask() const { return cached_.must_ask(); }
    // Whether the structure was taken from the cache.
    bool is_known() const { return is_cached_; }
    // Valid until the spec is taken.
    Structure structure() const { return is_cached_ ? cached_.structure() : builder_.view(); }
    // A tuple of the paths of the leaves, where one is kept with the structure; else null.
    nb::object kept_paths() { return is_cached_ ? cached_.paths() : nb::object(); }
    nb::object take_spec();
    nb::object take_leaves() { return leaves_.take_list(); }
    // For a walk that needs no spec: remembers the structure for the next one.
    void remember();

private:
    CachedStructure cached_;
    StructureBuilder builder_;
    Leaves leaves_;
    bool is_cached_ = false;

    void follow_asking(PyObject *tree, const FlattenOptions &options, NodeObjects *objects);
    void take_apart(PyObject *tree, const FlattenOptions &options, NodeObjects *objects, NodeAnswers *answers);
};

// (spec, the shared objects in the order of their numbers)
nb::object shared_objects_of(nb::handle tree, const FlattenOptions &options);

// Most trees have been seen before. As long as each object is what the structure says, it is enough to look at it: no
// Python code runs, so with the GIL nothing changes meanwhile, nothing needs to be owned, and nothing is written but
// the leaves. At the first difference these walks give up.
//
// Whether flattening `tree` with these options gives exactly this structure; if so, `leaves`, empty
// before, gets the leaves. False also if only Python code could tell.
bool flatten_known(const Structure &structure, PyObject *tree, const FlattenOptions &options, Leaves &leaves,
                   NodeObjects *objects);

// The same for a structure with nodes that must be asked: with `answers.other_refs` in the place of its own references
// it is the structure of the tree. If not, the next walk needs `answers`.
bool flatten_asking(const Structure &structure, PyObject *tree, const FlattenOptions &options, Leaves &leaves,
                    NodeObjects *objects, NodeAnswers &answers);

// The object at each node of a structure, by its position; borrowed, so with the GIL only.
using BorrowedObjects = Buffer<PyObject *, 192>;
// The same, for a walk that builds the tree anew: `objects`, empty before, gets them. They are valid until Python code
// runs. False where a function has to build a node.
bool look_at_known(const Structure &structure, PyObject *tree, const FlattenOptions &options, BorrowedObjects &objects);

// Whether `tree` holds one object for each leaf of the structure, in nodes that are opened as the
// structure says, and the same object at all occurrences of a shared object. `leaves` as above.
//
// `space`: null if the classes in the structure have just been looked up. Otherwise the class of each object
// of a kind that has many classes is looked up in it again, among the classes that are known already.
bool match_known(const Structure &structure, PyObject *tree, Leaves &leaves, Namespace *space);

// Takes apart a tree of which nothing is known, without running Python code, so with the GIL nothing has to be owned on
// the way. False if Python code would have to run (for a callback, a class that was never looked up or a key that is
// not a string), and if anything is wrong. Then everything that it fills is empty again.
// `objects`: null if the caller doesn't need them.
bool flatten_pure(PyObject *tree, const FlattenOptions &options, StructureBuilder &builder, Leaves &leaves,
                  NodeObjects *objects);

}  // namespace pydag
