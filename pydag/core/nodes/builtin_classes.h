// SPDX-License-Identifier: Apache-2.0
//
// Python's own classes whose instances are nodes without a registration.
#pragma once

namespace pydag {

// Adds them to the registry, when the module is made.
void add_builtin_classes();

}  // namespace pydag
