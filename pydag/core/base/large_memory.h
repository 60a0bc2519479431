// SPDX-License-Identifier: Apache-2.0
//
// Memory for millions of objects. The system hands out memory page by page, when a page is first touched,
// which can take longer than the walk that fills it. With large pages it does so a few hundred times less.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pydag {

// To be called before the memory is written. It is a hint: if the system ignores it, only time is lost.
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

}  // namespace pydag
