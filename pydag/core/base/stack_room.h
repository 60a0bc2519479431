// SPDX-License-Identifier: Apache-2.0
//
// Sees to it that a function of the library has room on the C stack.
//
// A function that the library calls may call the library, and so on. Python's own limit counts frames of Python,
// and knows nothing of the kilobytes that each call of the library takes between them; nor does it know how large
// the stack of a thread is. So what counts here is the address up to which the stack has grown.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"

namespace pydag {

namespace detail {
// The stack of this thread, which grows towards lower addresses.
struct StackBounds {
    uintptr_t low;      // where it ends
    uintptr_t reserve;  // so many bytes above that are left to what a function of the library does and calls
};
// Every address is refused until the bounds are known.
extern constinit thread_local StackBounds stack_bounds;
void check_stack_room(uintptr_t address);
}  // namespace detail

// Raises RecursionError where the stack is nearly used up. Who runs on a stack that isn't the thread's own (a
// coroutine of another library's) isn't checked.
inline void require_stack_room() {
    const uintptr_t address = stack_address();
    if (address - detail::stack_bounds.low < detail::stack_bounds.reserve) [[unlikely]]
        detail::check_stack_room(address);
}

}  // namespace pydag
