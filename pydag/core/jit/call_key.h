// SPDX-License-Identifier: Apache-2.0
//
// What JAX compiles a function for, as a static argument. It is equal to itself alone: JAX compares keys while it looks
// into tables of its own, and crashes if code of Python's runs then. Its hash is its own, too: functions with arguments
// of one structure have equal values, and JAX would compare their keys one after the other.
#pragma once

#include "base/box.h"

#include <atomic>

namespace pydag {

struct CallKey {
    nb::object value;
    std::atomic<size_t> num_calls = 0;  // of the compiled function, for this key
    auto python_refs() { return std::tie(value); }
};
static_assert(sizeof(CallKey) == sizeof(nb::object) + sizeof(size_t), "list the new member in python_refs()");
using CallKeyBox = Box<CallKey>;

nb::object make_call_key(nb::handle value);
// Counts a call, if the key is a CallKey.
inline void note_call(PyObject *key) {
    if (CallKeyBox::check(key)) CallKeyBox::of(key).num_calls.fetch_add(1, std::memory_order_relaxed);
}
void make_call_key_type();

}  // namespace pydag
