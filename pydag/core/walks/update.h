// SPDX-License-Identifier: Apache-2.0
//
// Writes other leaves into the objects of a DAG.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Replaces each leaf of `target` by what `source` holds for it, in place: all containers stay the same
// objects, except tuples, which are replaced by new ones. All or nothing: everything that may fail is
// tried before the first write, and if a write fails nevertheless, the others are undone.
//
// `writers` says how nodes with a flatten function are written, as in write_leaves.h; None: they can't be.
//
// TypeError for a root that is a leaf or a tuple, and if a node with a flatten function would have
// to change that can't be written; ValueError and SharingError if the trees don't fit.
void update(nb::handle target, nb::handle source, nb::handle writers, const FlattenOptions &options);

}  // namespace pydag
