// SPDX-License-Identifier: Apache-2.0
//
// What compilers and their libraries spell differently. No other file asks which compiler it is.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace pydag {

// Asks for memory that will be read soon.
inline void prefetch(const void *memory) {
#if defined(__GNUC__)  // Clang as well
    __builtin_prefetch(memory);
#else
    (void)memory;
#endif
}

// An address in the part of the stack that the running function uses. To be inlined into that function.
inline uintptr_t stack_address() {
#if defined(_MSC_VER)
    return reinterpret_cast<uintptr_t>(_AddressOfReturnAddress());
#else
    return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
#endif
}

}  // namespace pydag
