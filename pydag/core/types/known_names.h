// SPDX-License-Identifier: Apache-2.0
//
// The names that another library gave to the children of a class's instances. Asking costs as much as opening, so
// it is asked once for all instances with as many children and the same aux_data.
#pragma once

#include "base/capi.h"

#include <vector>

namespace pydag {

class KnownNames {
public:
    // The names, or None; null where they have to be asked for. Runs no Python code.
    nb::object find(PyObject *aux_data, Py_ssize_t count) const;
    // Remembers the names, if that keeps nothing alive but small constants.
    void add(nb::object aux_data, Py_ssize_t count, nb::object names);

private:
    struct Known {
        nb::object aux_data;
        Py_ssize_t count;
        nb::object names;
    };
    std::vector<Known> known_;
    size_t next_ = 0;  // the one that is replaced next
};

}  // namespace pydag
