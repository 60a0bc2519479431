// SPDX-License-Identifier: Apache-2.0
//
// Weak references, looked at without a call.
#pragma once

#include "base/capi.h"

namespace pydag {

// Where a weak reference keeps the address of its object; another address once the object is gone.
inline PyObject *const *referent_address(nb::handle weakref) {
    return &reinterpret_cast<PyWeakReference *>(weakref.ptr())->wr_object;
}
// The object of a weak reference; null if it is gone, or in the middle of being destroyed.
inline nb::object referent_of(nb::handle weakref) {
#ifdef Py_GIL_DISABLED
    PyObject *object = nullptr;
    checked(PyWeakref_GetRef(weakref.ptr(), &object));
    return nb::steal(object);
#else
    PyObject *const object = *referent_address(weakref);
    return object == Py_None ? nb::object() : owned_if_alive(object);
#endif
}

// A weak reference to a class that may die; a null object for any other one.
inline nb::object weak_reference_to(PyTypeObject *type) {
    if (!is_heap_type(type)) return nb::object();
    return checked(PyWeakref_NewRef(as_object(type), nullptr));
}

}  // namespace pydag
