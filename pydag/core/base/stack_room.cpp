// SPDX-License-Identifier: Apache-2.0
#include "base/stack_room.h"

#include "base/error.h"

#include <algorithm>

#if defined(_WIN32)
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace pydag {
namespace detail {

constinit thread_local StackBounds stack_bounds = {0, UINTPTR_MAX};

namespace {

struct Stack {
    uintptr_t low;
    size_t size;
};

// Where nobody tells: a stack that is as small as any of those that Python itself makes.
[[maybe_unused]] Stack guess_stack(uintptr_t address) {
    constexpr size_t kSmall = 512 << 10;
    return {address - std::min<uintptr_t>(address, kSmall), kSmall};
}

Stack find_stack(uintptr_t address) {
#if defined(_WIN32)
    ULONG_PTR low = 0, high = 0;
    GetCurrentThreadStackLimits(&low, &high);
    return low < high ? Stack{low, high - low} : guess_stack(address);
#elif defined(__APPLE__)
    const size_t size = pthread_get_stacksize_np(pthread_self());
    const auto high = reinterpret_cast<uintptr_t>(pthread_get_stackaddr_np(pthread_self()));
    return size < high ? Stack{high - size, size} : guess_stack(address);
#elif defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return guess_stack(address);
    void *low = nullptr;
    size_t size = 0, guard = 0;
    const bool is_known = pthread_attr_getstack(&attributes, &low, &size) == 0;
    // Some versions of the C library count the guard as a part of the stack.
    if (pthread_attr_getguardsize(&attributes, &guard) != 0 || guard > size / 2) guard = 0;
    pthread_attr_destroy(&attributes);
    return is_known ? Stack{reinterpret_cast<uintptr_t>(low) + guard, size - guard} : guess_stack(address);
#else
    return guess_stack(address);
#endif
}

// Enough for what a function of the library takes and for what Python code that it calls may take before it
// calls the library again; on a small stack a part of it, so that something is left.
size_t reserve_of(size_t stack_size) {
    constexpr size_t kLeast = 64 << 10, kMost = 512 << 10;
    return std::min(std::clamp(stack_size / 8, kLeast, kMost), stack_size / 2);
}

}  // namespace

void check_stack_room(uintptr_t address) {
    if (stack_bounds.low == 0) {
        const Stack stack = find_stack(address);
        stack_bounds = {stack.low, reserve_of(stack.size)};
    }
    const uintptr_t left = address - stack_bounds.low;
    if (left >= stack_bounds.reserve) return;
    fail(PyExc_RecursionError,
         "maximum recursion depth exceeded: functions that pydag calls call pydag again, until only %zu kB of the "
         "thread's C stack are left",
         static_cast<size_t>(left >> 10));
}

}  // namespace detail
}  // namespace pydag
