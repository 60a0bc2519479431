// SPDX-License-Identifier: Apache-2.0
//
// How a walk that runs no Python code keeps objects that it takes out of containers. With the GIL the containers keep
// them. Without the GIL another thread may change a container, so the walk owns the objects.
#pragma once

#include "base/buffer.h"

namespace pydag {

#ifdef Py_GIL_DISABLED

class Held {
public:
    // Takes references to these objects. To be called while their container is locked. Null is passed over.
    void keep(PyObject *const *objects, size_t count) {
        objects_.reserve(count);
        for (size_t i = 0; i < count; ++i)
            if (objects[i]) objects_.push_reserved(incref(objects[i]));
    }
    void keep(PyObject *object) { keep(&object, 1); }
    // Releases all. A finalizer may run here.
    void release() { objects_.drop_to(0); }

private:
    RefBuffer<96> objects_;
};
using HeldBy = Held &;

#else

struct Held {
    void keep(PyObject *const *, size_t) const {}
    void keep(PyObject *) const {}
    void release() const {}
};
using HeldBy = Held;  // an empty class: no register is spent on it

#endif

}  // namespace pydag
