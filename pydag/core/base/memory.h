// SPDX-License-Identifier: Apache-2.0
//
// What is done with memory before it is first written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__linux__)
#include <sys/mman.h>
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

// For memory of millions of objects. The system hands out memory page by page, when a page is first touched, which can
// take longer than the walk that fills it. With large pages it does so a few hundred times less. It is a hint.
inline void ask_for_large_pages(void *memory, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr size_t kLeast = size_t{8} << 20, kLargePage = size_t{2} << 20;
    if (bytes < kLeast) return;
    const auto begin = reinterpret_cast<uintptr_t>(memory), end = begin + bytes;
    const uintptr_t first = (begin + kLargePage - 1) & ~(kLargePage - 1), last = end & ~(kLargePage - 1);
    madvise(reinterpret_cast<void *>(first), last - first, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

// Finds reads of memory that nobody has written: in a build for the sanitizers (PYDAG_POISON) it fills the memory with
// a pattern, which is the address of no object. Does nothing in other builds.
inline void poison([[maybe_unused]] void *memory, [[maybe_unused]] size_t bytes) {
#ifdef PYDAG_POISON
    if (bytes > 0) std::memset(memory, 0xA5, bytes);
#endif
}

}  // namespace pydag
