// SPDX-License-Identifier: Apache-2.0
//
// The registrations that were made with pydag itself, by class and namespace.
//
// A class is found by its address; its registration owns the class. This is no dict, because a dict would
// call the `__hash__` and `__eq__` of a metaclass, and others could find the dict and change it. All threads share it,
// and ask it only for classes that they haven't seen before.
#pragma once

#include "types/registration.h"

namespace pydag {

// The registration of a class in just this namespace, an exact str; null if there is none.
nb::object find_own(nb::handle namespace_, nb::handle type);
// False, and nothing is added, where there is one.
bool add_own(nb::handle registration);
// Removes it and returns it; null where there is none.
nb::object remove_own(nb::handle namespace_, nb::handle type);

// A list of (namespace, class) for each of them, in no order.
nb::object registered_classes();

}  // namespace pydag
