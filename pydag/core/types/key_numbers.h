// SPDX-License-Identifier: Apache-2.0
//
// Numbers that the keys of a mapping are compared by: they tell nearly always, and cost one comparison of words.
#pragma once

#include "base/buffer.h"

namespace pydag {

struct NumberedKey {
    uint64_t number;  // of two keys with different numbers, that with the lower one comes first
    uint32_t index;
};
using NumberedKeys = Buffer<NumberedKey, 24>;

// Numbers the keys, if all are exact strings, all exact ints, or all tuples of these; false for other keys, and for
// those that only their own comparison can tell apart. Runs no Python code.
bool number_keys(PyObject *const *keys, uint32_t count, NumberedKeys &numbered);

// Whether `a` comes before `b`: two keys that have the same number. Throws IncomparableError where they don't compare.
struct IncomparableError {};
bool is_less(PyObject *a, PyObject *b);

}  // namespace pydag
