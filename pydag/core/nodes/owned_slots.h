// SPDX-License-Identifier: Apache-2.0
//
// Which containers lead to what they hold by one way only: what they alone hold needs no place in the identity table.
#pragma once

#include "nodes/open.h"

namespace pydag {

// Whether an object to which only this container has a reference can be met only once, given that the container,
// which was just read, is opened only once. `num_own`: how many references to the container the walk itself has.
inline bool owns_its_slots(Kind kind, PyObject *container, const OpenOptions &options, Py_ssize_t num_own = 0) {
    switch (kind) {
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
        case Kind::kFrozenDict:
        case Kind::kTuple:
        case Kind::kNamedTuple:
        case Kind::kStructSequence:
            // A dict may be the `__dict__` of an instance, which leads to its values, too. A tuple may be opened again.
            return has_references(container, 1 + num_own);
        case Kind::kList:
        case Kind::kDeque:
            return true;
        default:
            return (kind == Kind::kFields || kind == Kind::kCustom) && options.owns_attributes;
    }
}

}  // namespace pydag
