// SPDX-License-Identifier: Apache-2.0
//
// The namespaces of structures that are put together. The empty one goes with every other one; what
// was made there must then be, in the other one, what it is.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Whether structures of both may meet: the names are equal, or one of them is empty.
bool are_compatible(nb::handle a, nb::handle b);

// ValueError where a registered class in a structure of the empty namespace is registered
// otherwise in this one, or not at all: putting it there would silently change what it means.
// `purpose`: "merged", "transformed", ... May run Python code.
void check_registrations(const Structure &structure, nb::handle namespace_, const char *purpose);

// The namespace of a structure that is made of two. ValueError where they don't go together.
nb::object merge_namespaces(const Structure &a, const Structure &b);

}  // namespace pydag
