// SPDX-License-Identifier: Apache-2.0
//
// What compilers and their libraries spell differently. No other file asks which compiler it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

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

// An array whose elements hold anything until they are written: `std::make_unique_for_overwrite`, which the
// libraries of Clang before 16 lack.
template <class T>
std::unique_ptr<T[]> unwritten_array(size_t size) {
    return std::unique_ptr<T[]>(new T[size]);
}

}  // namespace pydag
