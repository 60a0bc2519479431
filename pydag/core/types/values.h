// SPDX-License-Identifier: Apache-2.0
//
// Which values are one: of one type and equal. Floats are told apart by their bits, so that 0.0 and
// -0.0 are two, and any NaN is as any other; tuples item by item, so that (1,) and (True,) are two.
#pragma once

#include "base/identity_table.h"
#include "types/registry.h"

#include <unordered_map>

namespace pydag {

// With `space`: what a tree holds, as that namespace sees it. An object is the same as itself alone;
// its own `__eq__` doesn't run. Without: keys, aux_data and the like. There lists and dicts are
// compared item by item, in their order, and what else can be hashed by its own `==`; classes, and
// what can't be hashed, are the same as themselves alone.
bool is_same_value(nb::handle a, nb::handle b, Namespace *space);

// A hash that goes with it; never fails for want of one.
uint64_t hash_value(nb::handle value, Namespace *space);

// Numbers for values, 0, 1, 2 ...: those that are the same get the same number.
class ValueTable {
public:
    explicit ValueTable(Namespace *space = nullptr) : space_(space) {}
    uint32_t number_of(nb::handle value);
    // The first value that got this number.
    PyObject *operator[](uint32_t number) const { return values_[number]; }

private:
    Namespace *const space_;
    RefBuffer<16> values_;
    IdentityTable known_;  // the same values, by address
    std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

}  // namespace pydag
