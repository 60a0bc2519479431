// SPDX-License-Identifier: Apache-2.0
//
// What guards state that threads share (THREADS.md). With the GIL all of this is nothing.
#pragma once

#include "base/capi.h"

#include <atomic>
#include <mutex>
#include <type_traits>

// A variable that each thread has for itself where threads run at the same time; otherwise there is one.
#ifdef Py_GIL_DISABLED
#define PYDAG_OWN_OF_THREAD thread_local
#else
#define PYDAG_OWN_OF_THREAD
#endif

namespace pydag {

// While it is locked no Python code may run, and no object may be released, since a finalizer is Python code.
class Mutex {
public:
    Mutex() = default;
    Mutex(const Mutex &) = delete;
    Mutex &operator=(const Mutex &) = delete;
#ifdef Py_GIL_DISABLED
    void lock() { PyMutex_Lock(&mutex_); }
    void unlock() { PyMutex_Unlock(&mutex_); }
    // For the child of a fork: another thread may have been about to get it.
    void reset() { mutex_ = {}; }

private:
    PyMutex mutex_ = {};
#else
    void lock() {}
    void unlock() {}
#endif
};

// That of the registrations, and that of the threads that wait for a turn (turn.h).
extern Mutex registry_mutex, turn_mutex;
// Called at import.
void make_mutexes();

using Guard = std::lock_guard<Mutex>;

// While it lives, no other thread changes the dict, list, deque, or slots of the object (CPython's critical section). A
// call that waits would interrupt it. One thread must not lock an object twice.
class Locked {
public:
#ifdef Py_GIL_DISABLED
    explicit Locked(PyObject *object) { PyCriticalSection_Begin(&section_, object); }
    ~Locked() { PyCriticalSection_End(&section_); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

private:
    PyCriticalSection section_;
#else
    explicit Locked(PyObject *) {}
    ~Locked() {}
#endif
};

// A value of which there is one for the process, or, where threads run at the same time, one for each thread: for
// everything that is only remembered to save time.
#ifdef Py_GIL_DISABLED

namespace detail {
// Calls `destroy(value)` when the thread ends, while it can still run Python code.
void destroy_with_thread(void *value, void (*destroy)(void *));
}  // namespace detail

template <class Value>
class OwnOfThread {
public:
    static Value &get() {
        if (!value_) [[unlikely]]
            make();
        return *value_;
    }

private:
    static void make() {
        value_ = new Value();
        detail::destroy_with_thread(value_, [](void *value) {
            // It may be another thread's: the child of a fork ends the threads that it has not.
            if (value_ == value) value_ = nullptr;
            delete static_cast<Value *>(value);
        });
    }
    static inline constinit thread_local Value *value_ = nullptr;
};

#else

template <class Value>
class OwnOfThread {
public:
    static Value &get() {
        if constexpr (std::is_trivially_destructible_v<Value>) {
            return value_.value;
        } else {
            // Lives as long as the process: destroying it after the interpreter is gone would crash.
            static Value *const instance = new Value;
            return *instance;
        }
    }

private:
    struct Nothing {};
    struct Plain {
        std::conditional_t<std::is_trivially_destructible_v<Value>, Value, Nothing> value = {};
    };
    static inline constinit Plain value_ = {};
};

#endif

}  // namespace pydag
