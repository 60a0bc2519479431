// SPDX-License-Identifier: Apache-2.0
#include "base/stack_room.h"

#include "base/error.h"

#include <algorithm>

#if defined(_WIN32)
#define NOMINMAX  // its macros `min` and `max`
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace pydag {
namespace detail {

constinit thread_local StackBounds stack_bounds = {0, UINTPTR_MAX};

namespace {

// The reserve is enough for a function of the library and for Python code that it calls before that calls the library
// again; on a small stack it is a part of the stack.
StackBounds bounds_of(uintptr_t low, size_t size) {
    constexpr size_t kLeast = 64 << 10, kMost = 512 << 10;
    return {low, std::min(std::clamp(size / 8, kLeast, kMost), size / 2)};
}

StackBounds find_bounds(uintptr_t address) {
#if defined(_WIN32)
    ULONG_PTR low = 0, high = 0;
    GetCurrentThreadStackLimits(&low, &high);
    if (low < high) return bounds_of(low, high - low);
#elif defined(__APPLE__)
    const size_t size = pthread_get_stacksize_np(pthread_self());
    const auto high = reinterpret_cast<uintptr_t>(pthread_get_stackaddr_np(pthread_self()));
    if (size < high) return bounds_of(high - size, size);
#elif defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void *low = nullptr;
        size_t size = 0, guard = 0;
        const bool is_known = pthread_attr_getstack(&attributes, &low, &size) == 0;
        // Some versions of the C library count the guard as a part of the stack.
        if (pthread_attr_getguardsize(&attributes, &guard) != 0 || guard > size / 2) guard = 0;
        pthread_attr_destroy(&attributes);
        if (is_known) return bounds_of(reinterpret_cast<uintptr_t>(low) + guard, size - guard);
    }
#endif
    // Not known: a stack that is as small as any of those that Python itself makes.
    // GCOVR_EXCL_START: every system that runs the tests tells where its stack is
    constexpr size_t kSmall = 512 << 10;
    return bounds_of(address - std::min<uintptr_t>(address, kSmall), kSmall);
    // GCOVR_EXCL_STOP
}

}  // namespace

void check_stack_room(uintptr_t address) {
    if (stack_bounds.low == 0) stack_bounds = find_bounds(address);
    const uintptr_t left = address - stack_bounds.low;
    if (left >= stack_bounds.reserve) return;
    fail(PyExc_RecursionError,
         "maximum recursion depth exceeded: functions that pydag calls call pydag again, until only %zu kB of the "
         "thread's C stack are left",
         static_cast<size_t>(left >> 10));
}

}  // namespace detail
}  // namespace pydag
