// SPDX-License-Identifier: Apache-2.0
//
// Puts other children into a node that exists.
#pragma once

#include "nodes/open.h"

namespace pydag {

// Whether the children of nodes of this kind can be changed in place. A tuple has to be built anew.
bool is_writable(Kind kind, PyObject *const *refs);

// Replaces the children of `object`, all of them, by `children`, and changes nothing else. The object must match the
// node that has these `refs`. One `once` serves all nodes that a walk writes.
void write_children(Kind kind, PyObject *const *refs, PyObject *object, PyObject *const *children, uint32_t count,
                    MadeOnce &once);

}  // namespace pydag
