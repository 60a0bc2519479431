// SPDX-License-Identifier: Apache-2.0
//
// The leaves of a prefix, each given to all that stands below its place in a full structure.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Two answers for what is one object in the full structure.
struct Conflict {
    std::string first, other;               // the paths at which they are given
    nb::object first_answer, other_answer;  // leaves of the prefix; null where nodes of two kinds meet it
};

enum class Wanted {
    kTree,       // the structure that the prefix is broadcast to, and its leaves
    kLeaves,     // only what the leaves of the full structure get: nodes of two kinds are no conflict
    kConflicts,  // all conflicts of the tree; what doesn't fit is passed over
};

struct Broadcast {
    // The nodes of the prefix where it has any, and those of the full structure below: with the sharing
    // of the latter, whatever the prefix shares.
    StructureBuilder result;
    Leaves values;                    // what each leaf of the result gets
    Leaves values_of_full;            // the same in the order of the full structure
    std::vector<Conflict> conflicts;  // only the first one, unless all are wanted; then the rest is void
};

// `leaves`: those of the prefix. All paths to a shared object of `full` must lead to one answer: the same
// object, or equal values. ValueError where the prefix doesn't fit.
void broadcast(const Structure &prefix, PyObject *const *leaves, const Structure &full, Wanted wanted, Broadcast &made);

}  // namespace pydag
