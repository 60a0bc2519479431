// SPDX-License-Identifier: Apache-2.0
//
// Somebody may keep notes of objects that have no place in the objects themselves, and hand them on to what `dag_map`
// and `dag_copy` make of these. Now that is pydag.jaxinterop, for derivatives: they have None in instances of
// registered classes.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Calls each function in `pydag.structure.copies.copy_listeners` with a tree and with what was made of it, a tree of
// the same structure, if there is None in it, and an instance of a registered class.
void tell_copy_listeners(const Structure &structure, nb::handle tree, nb::handle made);

}  // namespace pydag
