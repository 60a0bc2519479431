// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the attributes of `register_fields` classes, as `copy.copy` does: `__slots__`
// members at their offsets, everything else in `__dict__`. No descriptor, `__getattribute__` or
// `__setattr__` of the class is called, neither to read nor to write.
#pragma once

#include "base/threads.h"
#include "types/registry.h"

namespace pydag {

// Asks Python which fields the class has, once: `@dataclass` may have run after registration.
void resolve_fields(Registration &registration);

// The names of the slots that this class itself adds to its instances, sorted. They are taken from
// their layout, so it makes no difference if the class was changed since.
nb::object own_slots(nb::handle type);

// The offset of the slot that holds the attribute; 0 if that is in `__dict__`.
Py_ssize_t slot_offset(PyTypeObject *type, PyObject *name);

// The attribute of a class, its own or an inherited one; null if there is none. Runs no code of the class.
nb::object find_class_attribute(PyTypeObject *type, PyObject *name);
inline bool has_class_attribute(PyTypeObject *type, PyObject *name) {
    return find_class_attribute(type, name).is_valid();
}

// Whether an assignment to the attribute goes to something that the class has, such as a property or a slot.
bool takes_assignment(PyTypeObject *type, PyObject *name);

// The attribute, as a new reference; AttributeError if it is not set. If the instance has none, an
// attribute of the class counts, unless it is a descriptor: a dataclass keeps defaults there. May run the code of a key
// in `__dict__` that is no exact string.
nb::object read_field(PyObject *object, const FieldAccess &field);
// The `__dict__` of an instance; null, and no error, where it has none or can't make it.
nb::object instance_dict(PyObject *object);
// The value that a dict has for this very key object; null if there is none. Keys aren't compared, so no Python code
// runs.
nb::object find_by_address(PyObject *dict, PyObject *key);
// A `__slots__` member: owned by the instance, or null where it is not set.
inline PyObject *&slot_at(PyObject *object, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset);
}
inline PyObject *read_slot(PyObject *object, Py_ssize_t offset) { return slot_at(object, offset); }
// Writes a member, and returns what it was. The other threads that may see the instance are kept away.
inline nb::object exchange_slot(PyObject *object, Py_ssize_t offset, nb::object value) {
    const Locked locked(object);
    return nb::steal(std::exchange(slot_at(object, offset), value.release().ptr()));
}
// A member as an owned reference; null where it is not set.
inline nb::object owned_slot(PyObject *object, Py_ssize_t offset) {
    const Locked locked(object);
    return nb::borrow(read_slot(object, offset));
}

// Whether instances hold nothing but attributes, so that one can be made by `object.__new__`. False for
// a class that derives from list, Exception and the like, whatever its own `__new__` is.
bool has_plain_layout(nb::handle type);

// A new instance with no attribute set; `__init__` does not run.
nb::object new_instance(const Registration &registration);
// Writes the fields of a class whose data fields were named, in the order in which the instance that was
// read last had them: so the new one is read as fast.
void write_named(PyObject *object, const Registration &registration, PyObject *const *values, PyObject *const *meta);
// The data fields; `keys` is the Keys object of their names. Those that were found on an instance are written in the
// order in which it had them.
void write_fields(PyObject *object, const Registration &registration, PyObject *keys, PyObject *const *values);
void write_meta(PyObject *object, const Registration &registration, PyObject *const *values);

}  // namespace pydag
