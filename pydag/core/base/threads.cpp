// SPDX-License-Identifier: Apache-2.0
#include "base/threads.h"

#include <memory>

#if defined(Py_GIL_DISABLED) && !defined(_WIN32)
#include <pthread.h>
#endif

namespace pydag {

Mutex registry_mutex, turn_mutex;

// After a fork a mutex may belong to a thread that the child doesn't have. What it guards is whole: Python forks while
// no other thread is within the core.
void make_mutexes() {
#if defined(Py_GIL_DISABLED) && !defined(_WIN32)
    static bool are_made = false;
    if (!are_made) pthread_atfork(nullptr, nullptr, [] { registry_mutex.reset(), turn_mutex.reset(); });
    are_made = true;
#endif
}

}  // namespace pydag

#ifdef Py_GIL_DISABLED

namespace pydag::detail {
namespace {

struct Owned {
    void *value;
    void (*destroy)(void *);
};

// Without memory for this, the value is kept: it is of no use to another thread, but does no harm.
void on_end(PyObject *capsule) {
    const std::unique_ptr<Owned> owned(static_cast<Owned *>(PyCapsule_GetPointer(capsule, nullptr)));
    if (owned && !Py_IsFinalizing()) owned->destroy(owned->value);
}

}  // namespace

// The thread's dict in CPython is released when the thread ends.
void destroy_with_thread(void *value, void (*destroy)(void *)) {
    const nb::error_scope pending;
    PyObject *const dict = PyThreadState_GetDict();
    auto owned = std::make_unique<Owned>(Owned{value, destroy});
    const nb::object capsule = nb::steal(PyCapsule_New(owned.get(), nullptr, on_end));
    if (!capsule.is_valid()) return PyErr_Clear();
    owned.release();
    const nb::object key = nb::steal(PyLong_FromVoidPtr(value));
    // Where the dict can't take it, the capsule must not end the value now.
    if (!dict || !key.is_valid() || PyDict_SetItem(dict, key.ptr(), capsule.ptr()) < 0) {
        PyErr_Clear();
        incref(capsule.ptr());
    }
}

}  // namespace pydag::detail

#endif
