// SPDX-License-Identifier: Apache-2.0
//
// Takes a DAG apart: its distinct leaves, and its structure.
#pragma once

#include "base/error.h"
#include "base/identity_table.h"
#include "nodes/open.h"
#include "spec/cache.h"
#include "walks/flatten_known.h"
#include "walks/flatten_pure.h"
#include "walks/options.h"

namespace pydag {

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

}  // namespace pydag
