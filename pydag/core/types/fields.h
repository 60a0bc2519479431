// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the attributes of `register_fields` classes, without a Python call where the
// class is plain: `__slots__` members at their offsets, everything else by object's own attribute
// access, past any `__getattribute__` or `__setattr__` of the class.
#pragma once

#include "types/registry.h"

namespace pydag {

// Asks Python which fields the class has, once: `@dataclass` may have run after registration.
void resolve_fields(Registration &registration);

// The attribute, as a new reference; AttributeError if it is not set.
nb::object read_field(PyObject *object, const FieldAccess &field);
// A `__slots__` member: owned by the instance, or null where it is not set.
inline PyObject *&slot_at(PyObject *object, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset);
}
inline PyObject *read_slot(PyObject *object, Py_ssize_t offset) { return slot_at(object, offset); }

// Whether instances hold nothing but attributes, so that one can be made by `object.__new__`. Not
// so of a class that derives from list, Exception and the like, whatever its own `__new__` is.
bool has_plain_layout(nb::handle type);

// A new instance with no attribute set; `__init__` does not run.
nb::object new_instance(const Registration &registration);
void write_field(PyObject *object, const FieldAccess &field, PyObject *value);

}  // namespace pydag
