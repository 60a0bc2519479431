// SPDX-License-Identifier: Apache-2.0
//
// The values of meta fields, which are compared with the structure: arrays can't be among them.
//
// What has `__dlpack__` is taken for an array, whichever library it is of. Builtin containers and partials are looked
// into; what registered objects hold is not.
#pragma once

#include "types/registration.h"

namespace pydag {

// Whether a value is seen to be no array, nor to hold one, without any code being run.
bool is_surely_no_array(PyObject *value);
// TypeError if one of the values is an array, or holds one. `meta`: a tuple.
void require_no_arrays(const Registration &registration, nb::handle meta);

}  // namespace pydag
