// SPDX-License-Identifier: Apache-2.0
//
// Puts other children into a node that exists.
#pragma once

#include "nodes/open.h"

namespace pydag {

// Whether the children of nodes of this kind can be changed in place. A tuple has to be built anew.
bool is_writable(Kind kind, PyObject *const *refs);

// Replaces the children of `object`, as many as the node has, by `children`. The object
// is what `refs` say, and nothing else than its children changes. `once` is for all nodes that one walk writes.
void write_children(Kind kind, PyObject *const *refs, PyObject *object, PyObject *const *children, uint32_t count,
                    MadeOnce &once);

}  // namespace pydag
