// SPDX-License-Identifier: Apache-2.0
//
// Finds reads of memory that nobody has written. In a build for the sanitizers (PYDAG_POISON), scratch memory is
// filled with a pattern when it is handed out. A slot that is read before it is written is then an address that no
// object has: following it ends the process at once, while the word that happens to lie there without the pattern is
// mostly an object that stood there before. What is only compared is not found so: that takes valgrind.
#pragma once

#include <cstddef>
#include <cstring>

namespace pydag {

// Fills memory that the caller writes next. Does nothing in other builds.
inline void poison([[maybe_unused]] void *memory, [[maybe_unused]] size_t bytes) {
#ifdef PYDAG_POISON
    if (bytes > 0) std::memset(memory, 0xA5, bytes);
#endif
}

}  // namespace pydag
