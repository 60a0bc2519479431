// SPDX-License-Identifier: Apache-2.0
//
// The hash of a class, as a part of the hash of a spec.
#pragma once

#include "base/capi.h"

namespace pydag {

// Of the name of the class, its module's name, and the `_fields` of a namedtuple: the same in every process.
// It stays the same for as long as the class lives, whatever names it is given. Runs no Python code of the
// class's, and never fails: without memory a new name counts.
uint64_t hash_of_class(PyTypeObject *type);

}  // namespace pydag
