// SPDX-License-Identifier: Apache-2.0
//
// Equality of keys, aux_data and the values of meta fields: identity, then `==`.
//
// An exception of `__eq__` passes through. But where `==` gives an array, the two objects are unequal. So tuples, lists
// and dicts are compared here item by item: their own `==` would raise what the truth of the array raises.
#pragma once

#include "base/interrupt.h"
#include "base/pair_set.h"
#include "base/tuples.h"

namespace pydag {

// May run Python code.
bool are_equal_objects(nb::handle a, nb::handle b);

// The result of comparing two objects without their items.
enum class Sameness { kSame, kDifferent, kByItems };
constexpr Sameness as_sameness(bool is_same) { return is_same ? Sameness::kSame : Sameness::kDifferent; }

// Two tuples whose items have yet to be compared, one by one.
struct ItemPairs {
    nb::object items, others;
    // False if the numbers of items differ, or if items are missing.
    bool are_comparable() const {
        return PyTuple_GET_SIZE(items.ptr()) == PyTuple_GET_SIZE(others.ptr()) && is_filled(items) && is_filled(others);
    }
};

// Compares two objects and their items, without recursion. `compare(a, b, pairs)`: compares two objects that aren't the
// same object. For kByItems it fills `pairs`.
template <class Compare>
bool are_same_in_pairs(nb::handle a, nb::handle b, Compare compare) {
    // A pair that comes again, shared or by a cycle, is being compared already.
    PairSet<nb::handle, nb::handle> met;
    RefBuffer<8> pending;
    pending.push_borrowed(b.ptr()), pending.push_borrowed(a.ptr());
    while (!pending.empty()) {
        const nb::object x = pending.pop_owned(), y = pending.pop_owned();
        interruptible_step();
        if (x.is(y) || met.has(x, y)) continue;
        ItemPairs pairs;
        const Sameness sameness = compare(x, y, pairs);
        if (sameness == Sameness::kDifferent) return false;
        if (sameness == Sameness::kSame) continue;
        if (!pairs.are_comparable()) return false;
        met.add(x, y);
        for (Py_ssize_t i = PyTuple_GET_SIZE(pairs.items.ptr()); i-- > 0;) {
            pending.push_borrowed(PyTuple_GET_ITEM(pairs.others.ptr(), i));
            pending.push_borrowed(PyTuple_GET_ITEM(pairs.items.ptr(), i));
        }
    }
    return true;
}

// Whether a tuple is compared by its items alone.
inline bool is_tuple_of_items(nb::handle object) {
    PyTypeObject *const type = Py_TYPE(object.ptr());
    return PyTuple_Check(object.ptr()) && type->tp_richcompare == PyTuple_Type.tp_richcompare &&
           type->tp_hash == PyTuple_Type.tp_hash;
}

// Whether two leaves are arrays of different shapes. Runs Python code: `shape` may be a property.
bool differ_in_shape(nb::handle leaf, nb::handle other);

}  // namespace pydag
