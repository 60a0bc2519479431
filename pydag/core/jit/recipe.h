// SPDX-License-Identifier: Apache-2.0
//
// What a compiled function remembers of each structure that it was called with.
#pragma once

#include "base/threads.h"
#include "jit/call.h"

namespace pydag {

// TypeError for anything else.
FlatCall &flat_call_of(nb::handle object);
// Null if there are none. Python code can find the dict through the garbage collector, and put anything into it.
nb::object recipes_for(const FlatCall &call, nb::handle spec_key);

// What an object remembers of its last call, which other threads may replace meanwhile.
template <class T>
T shared_copy(nb::handle object, const T &member) {
    const Locked locked(object.ptr());
    return member;
}
template <class T>
void replace_shared(nb::handle object, T &member, T value) {
    const Locked locked(object.ptr());
    std::swap(member, value);  // the caller releases what was there
}

}  // namespace pydag
