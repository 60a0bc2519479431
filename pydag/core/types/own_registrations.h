// SPDX-License-Identifier: Apache-2.0
//
// The registrations that were made with pydag itself, by class and namespace.
//
// A class is found by its address; its registration owns the class. This is no dict, because a dict would
// call the `__hash__` and `__eq__` of a metaclass, and others could find the dict and change it.
#pragma once

#include "types/registration.h"

namespace pydag {

// The registration of a class in just this namespace, an exact str; null if there is none.
nb::object find_own(nb::handle namespace_, nb::handle type);
void add_own(nb::object registration);
void remove_own(nb::handle namespace_, nb::handle type);  // it must be there

// A list of (namespace, class) for each of them, in no order.
nb::object registered_classes();

}  // namespace pydag
