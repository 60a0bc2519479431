// SPDX-License-Identifier: Apache-2.0
//
// The attributes of a class that may take an assignment to an instance: properties, slots and other
// data descriptors, `__class__` and `__dict__` among them. Object's own way of setting an attribute is
// the fastest one into a `__dict__`, but it gives such an attribute the value instead.
//
// A class may change at any time. Its version tells, so that only then it is searched again.
#pragma once

#include "base/capi.h"

#include <vector>

namespace pydag {

class TakenNames {
public:
    // Brings what is known of the class up to date. To be called before `may_have`, which holds until
    // Python code runs.
    void update(PyTypeObject *type) {
        if (version_ == 0 || version_ != version_of(type)) [[unlikely]]
            search(type);
    }
    // Whether `PyObject_GenericSetAttr` might not put the attribute into `__dict__`. Runs no Python code.
    bool may_have(PyObject *name) const {
        return !is_exact_str(name) || !PyUnicode_CHECK_INTERNED(name) || may_have_interned(name);
    }
    bool may_have_interned(PyObject *name) const { return (mask_ & bit(name)) && is_listed(name); }

private:
    static uint64_t bit(PyObject *name) { return uint64_t{1} << (hash_address(name) >> 58); }
    bool is_listed(PyObject *name) const;
    void search(PyTypeObject *type);

    unsigned version_ = 0;           // of the class when it was searched; 0: never
    uint64_t mask_ = 0;              // of the names' addresses: most names are told by it
    std::vector<nb::object> names_;  // interned
};

}  // namespace pydag
