// SPDX-License-Identifier: Apache-2.0
//
// What threads share, and what guards it: docs/threads.md. With the GIL all of this is nothing: one thread runs at
// a time, and others go on only where Python code may run.
#pragma once

#include "base/capi.h"

#include <atomic>
#include <type_traits>

// A variable that each thread has for itself where threads run at the same time; otherwise there is one.
#ifdef Py_GIL_DISABLED
#define PYDAG_OWN_OF_THREAD thread_local
#else
#define PYDAG_OWN_OF_THREAD
#endif

namespace pydag {

// Held for a few instructions that change what threads share. No Python code may run meanwhile, nor may anything
// be released: a finalizer would be such code.
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
// When the module is made.
void make_mutexes();

class Guard {
public:
    explicit Guard(Mutex &mutex) : mutex_(mutex) { mutex_.lock(); }
    ~Guard() { mutex_.unlock(); }
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

private:
    Mutex &mutex_;
};

// While it lives, no other thread changes the dict, list, deque, or slots of the object: CPython's critical section.
// It is interrupted where the thread has to wait for something, so between the first and the last look into the object
// nothing may be called that waits. Two for one object must not live at the same time in one thread.
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

// A value of which there is one for the process, or, where threads run at the same time, one for each thread. What is
// only remembered to save time is kept so: no thread waits for another one, or reads what another one writes.
#ifdef Py_GIL_DISABLED

namespace detail {
// Calls `destroy(value)` when the thread ends, while it can still run Python code. The value is kept where that fails.
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
