// SPDX-License-Identifier: Apache-2.0
//
// The keys and values of one mapping, or the names and values of the attributes of one instance,
// between being read and being pushed.
#pragma once

#include "nodes/open.h"
#include "types/key_table.h"

#include <algorithm>

namespace pydag {

// The keys and values of one mapping, in its own order, while it is being opened. They are borrowed until
// `own` is called, which must come before any Python code can run, and while the mapping is locked.
class Items {
public:
    ~Items() {
        if (!owned_) return;
        while (!keys_.empty()) decref(keys_.pop());
        while (!values_.empty()) decref(values_.pop());
    }
    size_t size() const { return keys_.size(); }
    void reserve(size_t count) { keys_.reserve(count), values_.reserve(count); }
    void add(PyObject *key, PyObject *value) { keys_.push(key), values_.push(value); }

    void own() {
        if (owned_) return;
        owned_ = true;
        for (size_t i = 0; i < size(); ++i) incref(keys_[i]), incref(values_[i]);
    }

    bool has_only_strings() const { return std::all_of(keys_.data(), keys_.data() + size(), is_exact_str); }

    // The first `num_sorted` are traversed in ascending order.
    nb::object make_keys(size_t num_sorted) {
        own();
        return keys_of(keys_.data(), size(), num_sorted);
    }

    // Moves the values to the stack, in the order of `keys`, the last one first. They must be owned, which
    // they are once the keys were made.
    void push_values(const Keys &keys, Stack &stack) {
        const size_t count = size();
        PyObject **const slots = stack.extend(count);
        for (size_t i = 0; i < count; ++i) slots[count - 1 - keys.rank(static_cast<uint32_t>(i))] = values_[i];
        values_.resize_down(0);
    }

private:
    Buffer<PyObject *, 32> keys_, values_;
    bool owned_ = false;
};

}  // namespace pydag
