// SPDX-License-Identifier: Apache-2.0
//
// The classes of Python's own whose instances are nodes without any registration.
#pragma once

namespace pydag {

// Tells the registry of them, when the module is made.
void add_builtin_classes();

}  // namespace pydag
