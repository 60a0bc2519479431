// SPDX-License-Identifier: Apache-2.0
#include "types/fields.h"

#include "base/buffer.h"
#include "base/constants.h"
#include "base/error.h"
#include "base/threads.h"
#include "types/keys.h"

#include <descrobject.h>
#include <structmember.h>

#include <string_view>

namespace pydag {
namespace {

bool is_slot(const PyMemberDef &member) { return member.type == T_OBJECT_EX && member.flags == 0; }

// An attribute of a class, and the class that has it: the class itself, or one that it inherits from.
struct ClassAttribute {
    nb::object value;  // null if there is none
    PyTypeObject *owner = nullptr;
};
ClassAttribute class_attribute(PyTypeObject *type, PyObject *name) {
    const nb::object bases = mro_of(type);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases.ptr()); ++i) {
        auto *const base = reinterpret_cast<PyTypeObject *>(PyTuple_GET_ITEM(bases.ptr(), i));
        nb::object found = find_in_dict(dict_of_class(base), name);
        if (found.is_valid()) return {std::move(found), base};
    }
    return {};
}

// A slot in the layout of a class's instances, and the class that added it.
struct Slot {
    Py_ssize_t offset = 0;  // 0: there is none
    PyTypeObject *owner = nullptr;
};
Slot slot_in_layout(PyTypeObject *type, PyObject *name) {
    Py_ssize_t length = 0;
    const char *const text = PyUnicode_AsUTF8AndSize(name, &length);
    if (!text) PyErr_Clear();  // no identifier
    for (; text && type; type = type->tp_base)
        for (const PyMemberDef *member = type->tp_members; member && member->name; ++member)
            if (is_slot(*member) && std::string_view(member->name) == std::string_view(text, size_t(length)))
                return {member->offset, type};
    return {};
}

}  // namespace

// No slot that a subclass has hidden by a value: assignments go past it. One in its own class doesn't count.
Py_ssize_t slot_offset(PyTypeObject *type, PyObject *name) {
    const ClassAttribute found = class_attribute(type, name);
    const Slot slot = slot_in_layout(type, name);
    PyTypeObject *const kind = found.owner ? Py_TYPE(found.value.ptr()) : nullptr;
    const bool is_hidden = kind && found.owner != slot.owner && !kind->tp_descr_set && type->tp_dictoffset != 0;
    if (slot.offset) return is_hidden ? 0 : slot.offset;
    if (kind != &PyMemberDescr_Type) return 0;
    // A slot under another name than its own.
    auto *const descriptor = reinterpret_cast<PyMemberDescrObject *>(found.value.ptr());
    const bool is_own = PyType_IsSubtype(type, PyDescr_TYPE(descriptor)) && is_slot(*descriptor->d_member);
    return is_own ? descriptor->d_member->offset : 0;
}

bool takes_assignment(PyTypeObject *type, PyObject *name) {
    const ClassAttribute found = class_attribute(type, name);
    return found.value.is_valid() && Py_TYPE(found.value.ptr())->tp_descr_set;
}

nb::object own_slots(nb::handle cls) {
    if (!PyType_Check(cls.ptr())) fail(PyExc_TypeError, "Expected a class, got %U.", short_repr(cls).ptr());
    nb::object names = checked(PyList_New(0));
    auto *const type = reinterpret_cast<PyTypeObject *>(cls.ptr());
    const PyMemberDef *member = is_heap_type(type) ? type->tp_members : nullptr;
    for (; member && member->name; ++member)
        if (is_slot(*member))
            checked(PyList_Append(names.ptr(), checked(PyUnicode_InternFromString(member->name)).ptr()));
    return names;
}

nb::object find_class_attribute(PyTypeObject *type, PyObject *name) { return class_attribute(type, name).value; }

nb::object read_field(PyObject *object, const FieldAccess &field) {
    const nb::object owned_type = class_of(object);  // a key's `__eq__` may give the object another class
    auto *const type = reinterpret_cast<PyTypeObject *>(owned_type.ptr());
    PyObject *const name = field.name.ptr();
    if (field.offset) {
        if (nb::object value = owned_slot(object, field.offset); value.is_valid()) return value;
    } else if (type->tp_dictoffset != 0) {
        const nb::object dict = checked(PyObject_GenericGetDict(object, nullptr));
        if (nb::object value = find_in_dict(dict, name); value.is_valid()) return value;
    }
    nb::object found = field.offset ? nb::object() : class_attribute(type, name).value;
    const PyTypeObject *const kind = found.is_valid() ? Py_TYPE(found.ptr()) : nullptr;
    if (kind && !kind->tp_descr_get && !kind->tp_descr_set) return found;
    fail(PyExc_AttributeError, "'%.200s' object has no attribute %R: a field of a registered class must be set%s",
         type->tp_name, name,
         kind ? "; it is read from __dict__ or a slot, not from what the class has of that name" : "");
}

nb::object instance_dict(PyObject *object) {
    if (Py_TYPE(object)->tp_dictoffset == 0) return nb::object();
    nb::object dict = nb::steal(PyObject_GenericGetDict(object, nullptr));
    if (!dict.is_valid()) PyErr_Clear();
    return dict;
}

nb::object find_by_address(PyObject *dict, PyObject *key) {
    const Locked locked(dict);
    Py_ssize_t position = 0;
    for (PyObject *other, *value; PyDict_Next(dict, &position, &other, &value);)
        if (other == key) return nb::borrow(value);
    return nb::object();
}

bool has_plain_layout(nb::handle cls) {
    // Every class on the way to `object` by which instances grow must be a Python class, and have
    // grown by attributes alone: then the memory is freed by the generic functions.
    const auto adds_nothing = [](PyTypeObject *type) {  // such as typing.Generic
        return type->tp_basicsize == PyBaseObject_Type.tp_basicsize && type->tp_itemsize == 0;
    };
    auto *type = reinterpret_cast<PyTypeObject *>(cls.ptr());
    while (type && is_heap_type(type) && (type->tp_dealloc == constants.python_class->tp_dealloc || adds_nothing(type)))
        type = type->tp_base;
    return type == &PyBaseObject_Type;
}

nb::object new_instance(const Registration &registration) {
    auto *const type = reinterpret_cast<PyTypeObject *>(registration.type.ptr());
    // What `object.__new__` does for a class that has no abstract methods.
    if (!PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT)) return checked(type->tp_alloc(type, 0));
    return checked(PyBaseObject_Type.tp_new(type, constants.no_items, nullptr));
}

namespace {

// Stores an attribute without asking the class. TypeError if the name is no string.
void write_to_dict(PyObject *object, PyObject *name, PyObject *value) {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "the name of an attribute must be a string, got %U", short_repr(name).ptr());
        nb::raise_python_error();
    }
    const nb::object dict = checked(PyObject_GenericGetDict(object, nullptr));
    checked(PyDict_SetItem(dict.ptr(), name, value));
}

// The slot of this name, if it is one: mostly the next one, since slots come in their order.
const FieldAccess *find_slot(const std::vector<FieldAccess> &slots, size_t &next, PyObject *name) {
    for (size_t i = 0; i < slots.size(); ++i, ++next) {
        if (next >= slots.size()) next = 0;
        if (is_same_name(slots[next].name.ptr(), name)) return &slots[next++];
    }
    return nullptr;
}

// The taken names are up to date.
void write_field(PyObject *object, const TakenNames &taken, const FieldAccess &field, PyObject *value) {
    if (field.offset) exchange_slot(object, field.offset, nb::borrow(value)).reset();
    else if (taken.may_have_interned(field.name.ptr())) write_to_dict(object, field.name.ptr(), value);
    else checked(PyObject_GenericSetAttr(object, field.name.ptr(), value));
}

}  // namespace

void write_named(PyObject *object, const Registration &registration, PyObject *const *values, PyObject *const *meta) {
    const LearnedUse use;
    TakenNames &taken = registration.learned.get().taken_names;
    taken.update(Py_TYPE(object));
    const auto write = [&](bool is_meta, size_t i) {
        const FieldAccess &field = (is_meta ? registration.meta_access : registration.data_access)[i];
        write_field(object, taken, field, (is_meta ? meta : values)[i]);
    };
    // Code that a write may run, of a finalizer, can change the order.
    Buffer<DictField, 16> copy;
    const std::vector<DictField> &last_order = registration.learned.get().dict_order;
    const size_t count = last_order.size();
    const DictField *const order = copy.extend(count);
    std::copy_n(last_order.begin(), count, copy.data());
    for (size_t i = 0; i < count; ++i) write(order[i].is_meta, order[i].index);
    for (size_t i = 0; i < registration.data_access.size(); ++i)
        if (registration.data_access[i].offset) write(false, i);
    for (size_t i = 0; i < registration.meta_access.size(); ++i)
        if (registration.meta_access[i].offset) write(true, i);
}

void write_fields(PyObject *object, const Registration &registration, PyObject *box, PyObject *const *values) {
    const Keys &keys = KeysBox::of(box);
    const LearnedUse use;
    TakenNames &taken = registration.learned.get().taken_names;
    taken.update(Py_TYPE(object));
    if (box == registration.data.ptr()) {
        for (uint32_t i = 0; i < keys.count; ++i) write_field(object, taken, registration.data_access[i], values[i]);
        return;
    }
    size_t next = 0;
    for (uint32_t i = 0; i < keys.count; ++i) {  // in the order in which they were set
        PyObject *const name = keys.inserted_key(i), *const value = values[keys.rank(i)];
        if (const FieldAccess *const slot = find_slot(registration.slot_access, next, name))
            write_field(object, taken, *slot, value);
        else if (taken.may_have(name)) write_to_dict(object, name, value);
        else checked(PyObject_GenericSetAttr(object, name, value));
    }
}

void write_meta(PyObject *object, const Registration &registration, PyObject *const *values) {
    const LearnedUse use;
    TakenNames &taken = registration.learned.get().taken_names;
    taken.update(Py_TYPE(object));
    for (const FieldAccess &field : registration.meta_access) write_field(object, taken, field, *values++);
}

}  // namespace pydag
