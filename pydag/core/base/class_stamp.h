// SPDX-License-Identifier: Apache-2.0
//
// Shows that a class was changed: what was found out about it is looked at again only then.
#pragma once

#include "base/capi.h"

namespace pydag {

// A number that changes whenever `version_of` the class, or of its own class, a metaclass, does. 0 if one of them has
// no version at the moment.
inline uint64_t stamp_of(PyTypeObject *type) {
    const uint64_t version = version_of(type);
    if (Py_TYPE(type) == &PyType_Type) [[likely]]
        return version;
    const uint64_t meta = version_of(Py_TYPE(type));
    return version && meta ? meta << 32 | version : 0;
}
// The same; a class that has no version is given one if possible.
inline uint64_t assign_stamp(PyTypeObject *type) {
    assign_version(type);
    if (Py_TYPE(type) != &PyType_Type) assign_version(Py_TYPE(type));
    return stamp_of(type);
}

}  // namespace pydag
