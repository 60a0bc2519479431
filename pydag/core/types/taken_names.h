// SPDX-License-Identifier: Apache-2.0
//
// The attributes of a class that may take an assignment to an instance: properties, slots and other
// data descriptors, `__class__` and `__dict__` among them. `object.__setattr__` is the fastest way to write
// into a `__dict__`, but it would give the value to such an attribute instead.
//
// A class may change at any time. Its version shows that, so it is searched again only after a change.
#pragma once

#include "base/capi.h"

#include <vector>

namespace pydag {

class TakenNames {
public:
    // Brings the names of the class up to date. To be called before `may_have`, whose answers are valid until
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
    uint64_t mask_ = 0;              // of the names' addresses: it rules out most other names
    std::vector<nb::object> names_;  // interned
};

}  // namespace pydag
