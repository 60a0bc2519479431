// SPDX-License-Identifier: Apache-2.0
#include "base/threads.h"

#if defined(Py_GIL_DISABLED) && !defined(_WIN32)
#include <pthread.h>
#endif

namespace pydag {

Mutex registry_mutex, turn_mutex;

// Python forks while no other thread is within the core, so what a mutex guards is whole. But a mutex may have been
// handed over to a thread that the child doesn't have.
void make_mutexes() {
#if defined(Py_GIL_DISABLED) && !defined(_WIN32)
    static bool are_made = false;
    if (!are_made) pthread_atfork(nullptr, nullptr, [] { registry_mutex.reset(), turn_mutex.reset(); });
    are_made = true;
#endif
}

}  // namespace pydag
