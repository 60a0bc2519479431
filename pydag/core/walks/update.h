// SPDX-License-Identifier: Apache-2.0
//
// Writes other leaves into the objects of a DAG.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Puts what `source` holds at each leaf of `target` there, in place: all containers stay the objects
// that they are, but for tuples, which are put anew into what holds them. All or nothing: everything
// that may fail is tried before the first write, and if a write fails all the same, the others are
// undone.
//
// TypeError for a root that is a leaf or a tuple, and where a node with a flatten function would have
// to change; ValueError and SharingError where the trees don't fit.
void update(nb::handle target, nb::handle source, const FlattenOptions &options);

}  // namespace pydag
