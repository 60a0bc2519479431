// SPDX-License-Identifier: Apache-2.0
//
// What JAX compiles a function for, as a static argument. It is equal to itself alone: JAX compares keys while it looks
// into tables of its own, and crashes if code of Python's runs then. Its hash is its own, too: functions with arguments
// of one structure have equal values, and JAX would compare their keys one after the other.
#pragma once

#include "base/box.h"

namespace pydag {

struct CallKey {
    nb::object value;
    auto python_refs() { return std::tie(value); }
};
static_assert(sizeof(CallKey) == sizeof(nb::object), "list the new member in python_refs()");
using CallKeyBox = Box<CallKey>;

nb::object make_call_key(nb::handle value);
void make_call_key_type();

}  // namespace pydag
