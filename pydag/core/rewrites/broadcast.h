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

struct Broadcast {
    // The nodes of the prefix where it has any, and those of the full structure below: with the sharing
    // of the latter, whatever the prefix shares.
    StructureBuilder result;
    Leaves values;          // what each leaf of the result gets
    Leaves values_of_full;  // the same in the order of the full structure
    std::vector<Conflict> conflicts;
};

// `leaves`: those of the prefix. All paths to a shared object of `full` must lead to one answer: the same
// object, or equal values. ValueError where the prefix doesn't fit.
//
// Stops at the first conflict. With `finds_all` it goes on, passes over what doesn't fit, and only the
// conflicts are of use.
void broadcast(const Structure &prefix, PyObject *const *leaves, const Structure &full, bool finds_all,
               Broadcast &made);

}  // namespace pydag
