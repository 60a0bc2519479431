// SPDX-License-Identifier: Apache-2.0
//
// Ensures that a function of the library has room on the C stack. A function that the library calls may call the
// library again, and Python's own limit counts its frames, not the kilobytes that calls of the library take between
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace pydag {

namespace detail {
// The stack of this thread, which grows towards lower addresses.
struct StackBounds {
    uintptr_t low;      // where it ends
    uintptr_t reserve;  // so many bytes above that must be left
};
// Every address is refused until the bounds are known.
extern constinit thread_local StackBounds stack_bounds;
void check_stack_room(uintptr_t address);
}  // namespace detail

// An address in the part of the stack that the running function uses. To be inlined into that function.
inline uintptr_t stack_address() {
#if defined(_MSC_VER)
    return reinterpret_cast<uintptr_t>(_AddressOfReturnAddress());
#else
    return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
#endif
}

// Raises RecursionError where the stack is nearly used up. Code on another stack than the thread's own, as a coroutine
// of another library, isn't checked.
inline void require_stack_room() {
    const uintptr_t address = stack_address();
    if (address - detail::stack_bounds.low < detail::stack_bounds.reserve) [[unlikely]]
        detail::check_stack_room(address);
}

}  // namespace pydag
