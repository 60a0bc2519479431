// SPDX-License-Identifier: Apache-2.0
//
// Whether two objects that are given for one leaf are the same answer.
#pragma once

#include "types/namespace.h"

namespace pydag {

// Whether two answers for one leaf agree: the same object, or equal values of one type. Tuples, and instances of
// registered classes without identity, are compared part by part. No object's own `__eq__` runs; flatten functions do.
bool is_same_answer(Namespace &space, PyObject *a, PyObject *b);

}  // namespace pydag
