// SPDX-License-Identifier: Apache-2.0
//
// The namespaces of structures that are put together. The empty namespace goes with every other namespace in which the
// classes are registered in the same way.
#pragma once

#include "structure/structure.h"

namespace pydag {

// Whether structures of both may be put together: the names are equal, or one of them is empty.
bool are_compatible(nb::handle a, nb::handle b);

// ValueError if a class in a structure of the empty namespace is registered differently in this namespace, or not at
// all. `purpose`: "merged", "transformed", ... May run Python code.
void check_registrations(const Structure &structure, nb::handle namespace_, const char *purpose);

// The namespace of a structure that is made of two. ValueError where they don't go together.
nb::object merge_namespaces(const Structure &a, const Structure &b);

}  // namespace pydag
