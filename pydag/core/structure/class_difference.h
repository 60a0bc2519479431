// SPDX-License-Identifier: Apache-2.0
//
// Why two classes, or two registrations of one class, differ although they read the same.
#pragma once

#include "base/capi.h"

#include <string>

namespace pydag {

// What an error adds where both sides have one class.
constexpr const char *kRegisteredAnew = "; the class was registered anew between the two";

// What an error adds after the names of two classes: kRegisteredAnew for one class; how to go on for two of one
// name, as a notebook's cell that is run twice makes them; else nothing. Runs no code of the classes but a
// metaclass's `__getattribute__`.
std::string class_difference(nb::handle expected, nb::handle found);

}  // namespace pydag
