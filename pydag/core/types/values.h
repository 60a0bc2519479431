// SPDX-License-Identifier: Apache-2.0
//
// Which values are the same: those of one type that are equal, down to the sign of zero. So 1, True and 1.0 are three
// different values, 0.0 and -0.0 two; all NaNs are the same. Tuples, namedtuples, frozendicts and ranges are compared
// by their parts; where nothing is traced, lists, dicts, sets, slices, partials and frozen dataclasses, too. A compiled
// function is found by values that are compared in this way, by the core and by Python code.
#pragma once

#include "base/identity_table.h"
#include "types/registry.h"

#include <map>
#include <unordered_map>
#include <utility>

namespace pydag {

// With `space`: for what a tree holds, as that namespace sees it. An object is the same only as itself;
// its `__eq__` doesn't run. Without: for keys, aux_data and static values. There other objects are compared by their
// own `==` (see base/equality.h), classes by identity.
bool is_same_value(nb::handle a, nb::handle b, Namespace *space);

// Hashes for `is_same_value`. An object that can't be hashed has one, too.
//
// A list within two lists is hashed once: otherwise lists that hold one another several times would be hashed
// exponentially often. What is remembered is owned. If its own code changes it meanwhile, values that are the
// same may get two hashes.
class ValueHashes {
public:
    explicit ValueHashes(Namespace *space) : space_(space) {}
    uint64_t of(nb::handle value) { return hash(value, kLevels); }

private:
    // Only a few levels of items count, because a structure may be deep.
    static constexpr int kLevels = 8;
    uint64_t hash(nb::handle value, int levels);
    uint64_t hash_items(nb::handle items, int levels);
    uint64_t hash_elements(nb::handle items, int levels);  // whatever their order

    Namespace *const space_;
    RefBuffer<8> kept_;
    std::map<std::pair<PyObject *, int>, uint64_t> known_;  // of what has items, by the levels that count
};

// Numbers for values: 0, 1, 2 ... Values that are the same get the same number.
class ValueTable {
public:
    explicit ValueTable(Namespace *space = nullptr) : space_(space), hashes_(space) {}
    uint32_t number_of(nb::handle value);
    // The first value that got this number.
    PyObject *operator[](uint32_t number) const { return values_[number]; }

private:
    Namespace *const space_;
    ValueHashes hashes_;
    RefBuffer<16> values_;
    IdentityTable known_;  // the same values, by address
    std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

}  // namespace pydag
