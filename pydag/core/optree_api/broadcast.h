// SPDX-License-Identifier: Apache-2.0
//
// Gives each leaf of a prefix to everything that a full structure has below the same path.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Two answers of the prefix for one object of the full structure.
struct Conflict {
    std::string first, other;               // the paths of the object at which they are given
    nb::object first_answer, other_answer;  // leaves of the prefix; null where nodes of two kinds meet it
};

enum class Wanted {
    kTree,       // the structure that the prefix is broadcast to, and its leaves
    kLeaves,     // only what the leaves of the full structure get: nodes of two kinds are no conflict
    kConflicts,  // all conflicts of the tree; nodes that don't fit are ignored
};

struct Broadcast {
    // The nodes of the prefix, and below its leaves those of the full structure. It shares what the full
    // structure shares; what the prefix shares doesn't count.
    StructureBuilder result;
    Leaves values;                    // what each leaf of the result gets
    Leaves values_of_full;            // the same in the order of the full structure
    std::vector<Conflict> conflicts;  // the first one, or all if wanted; with any, nothing else here is valid
};

// `leaves`: those of the prefix. On all paths to a shared object of `full` the prefix must give one answer:
// the same object, or equal values. ValueError if the prefix doesn't fit.
void broadcast(const Structure &prefix, PyObject *const *leaves, const Structure &full, Wanted wanted, Broadcast &made);

}  // namespace pydag
