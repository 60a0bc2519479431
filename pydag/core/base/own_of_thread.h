// SPDX-License-Identifier: Apache-2.0
//
// A value of which there is one for the process, or, where threads run at the same time, one for each thread. What is
// only remembered to save time is kept so: no thread waits for another one, or reads what another one writes.
#pragma once

#include "base/threads.h"

#include <type_traits>

namespace pydag {

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
