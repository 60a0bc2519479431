// SPDX-License-Identifier: Apache-2.0
//
// Takes a DAG apart: its distinct leaves, and its structure.
#pragma once

#include "children.h"
#include "confirm.h"
#include "error.h"
#include "flatten_options.h"
#include "identity_table.h"
#include "spec_cache.h"

namespace pydag {

// A DAG, taken apart. Raises CycleError for an object that contains itself; whatever a callback
// raises passes through with a note that names the place.
class Parts {
public:
    // `shared`, where given, receives the shared objects themselves, by their number.
    Parts(nb::handle tree, const FlattenOptions &options, std::vector<nb::object> *shared = nullptr);

    Leaves &leaves() { return leaves_; }
    // Valid until the spec is taken.
    Structure structure() const { return is_remembered_ ? remembered_.structure() : draft_.view(); }
    nb::object take_spec();
    nb::object take_leaves() { return leaves_.take_list(); }
    // For a walk that needs no spec: remembers the structure for the next one.
    void remember();

private:
    Remembered remembered_;
    Draft draft_;
    Leaves leaves_;
    bool is_remembered_ = false;
};

}  // namespace pydag
