// SPDX-License-Identifier: Apache-2.0
#include "types/fields.h"

#include "base/error.h"
#include "types/keys.h"

#include <descrobject.h>
#include <structmember.h>

namespace pydag {
namespace {

// The offset of a `__slots__` member that holds an object and belongs to the class's own layout.
Py_ssize_t slot_offset(nb::handle type, nb::handle name) {
    const nb::object member = nb::steal(PyObject_GetAttr(type.ptr(), name.ptr()));
    if (!member.is_valid()) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) nb::raise_python_error();
        PyErr_Clear();
        return 0;
    }
    if (Py_TYPE(member.ptr()) != &PyMemberDescr_Type) return 0;
    auto *const descriptor = reinterpret_cast<PyMemberDescrObject *>(member.ptr());
    if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(type.ptr()), PyDescr_TYPE(descriptor))) return 0;
    // The same slot under another name is an ordinary attribute: no two fields share an offset.
    if (PyUnicode_Compare(PyDescr_NAME(descriptor), name.ptr()) != 0) return 0;
    const PyMemberDef &definition = *descriptor->d_member;
    return definition.type == T_OBJECT_EX && definition.flags == 0 ? definition.offset : 0;
}

std::vector<FieldAccess> access_to(nb::handle type, nb::handle names) {
    std::vector<FieldAccess> fields;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()); ++i) {
        nb::object name = nb::borrow(PyTuple_GET_ITEM(names.ptr(), i));
        const Py_ssize_t offset = slot_offset(type, name);
        fields.push_back({std::move(name), offset});
    }
    return fields;
}

void add_places(const std::vector<FieldAccess> &fields, bool is_meta, std::vector<FieldPlace> &places) {
    for (size_t i = 0; i < fields.size(); ++i)
        if (fields[i].offset == 0) places.push_back({fields[i].name.ptr(), static_cast<uint32_t>(i), is_meta});
}

// Any class that a class statement made.
PyTypeObject *python_class() {
    static PyObject *const type =
        checked(PyObject_CallFunction(reinterpret_cast<PyObject *>(&PyType_Type), "s(){}", "PythonClass"))
            .release()
            .ptr();
    return reinterpret_cast<PyTypeObject *>(type);
}

}  // namespace

void resolve_fields(Registration &registration) {
    if (registration.resolve_fields.is_none()) return;
    const nb::object answer = call(registration.resolve_fields);
    if (registration.resolve_fields.is_none()) return;  // resolved meanwhile, by that very call
    const nb::object data(answer[0]), slots(answer[1]), meta(answer[2]), is_plain(answer[3]);
    registration.slot_access = access_to(registration.type, slots);
    std::erase_if(registration.slot_access, [](const FieldAccess &slot) { return slot.offset == 0; });
    registration.meta_access = access_to(registration.type, meta);
    registration.meta_names = meta;
    registration.is_plain = is_plain.is(nb::handle(Py_True));
    registration.data = data;
    if (!data.is_none()) {
        registration.data_access = access_to(registration.type, data);
        registration.data = keys_of(&PyTuple_GET_ITEM(data.ptr(), 0), registration.data_access.size(), false);
        registration.dict_order.clear();
        add_places(registration.data_access, false, registration.dict_order);
        add_places(registration.meta_access, true, registration.dict_order);
        registration.has_only_slots = registration.dict_order.empty();
    }
    registration.resolve_fields = nb::none();
}

nb::object read_field(PyObject *object, const FieldAccess &field) {
    if (field.offset) {
        if (PyObject *const value = read_slot(object, field.offset)) return nb::borrow(value);
        PyErr_Format(PyExc_AttributeError,
                     "'%.200s' object has no attribute %R: a field of a registered class "
                     "must be set",
                     Py_TYPE(object)->tp_name, field.name.ptr());
        nb::raise_python_error();
    }
    return checked(PyObject_GenericGetAttr(object, field.name.ptr()));
}

bool has_plain_layout(nb::handle cls) {
    // Every class on the way to `object` by which instances grow must be a Python class, and have
    // grown by attributes alone: then the memory is freed by the generic functions.
    const auto adds_nothing = [](PyTypeObject *type) {  // such as typing.Generic
        return type->tp_basicsize == PyBaseObject_Type.tp_basicsize && type->tp_itemsize == 0;
    };
    auto *type = reinterpret_cast<PyTypeObject *>(cls.ptr());
    while (type && is_heap_type(type) && (type->tp_dealloc == python_class()->tp_dealloc || adds_nothing(type)))
        type = type->tp_base;
    return type == &PyBaseObject_Type;
}

nb::object new_instance(const Registration &registration) {
    static PyObject *const no_arguments = checked(PyTuple_New(0)).release().ptr();
    auto *const type = reinterpret_cast<PyTypeObject *>(registration.type.ptr());
    // What `object.__new__` does for a class that has no abstract methods.
    if (!PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT)) return checked(type->tp_alloc(type, 0));
    return checked(PyBaseObject_Type.tp_new(type, no_arguments, nullptr));
}

void write_field(PyObject *object, const FieldAccess &field, PyObject *value) {
    if (field.offset) {
        nb::steal(std::exchange(slot_at(object, field.offset), incref(value))).reset();
        return;
    }
    checked(PyObject_GenericSetAttr(object, field.name.ptr(), value));
}

}  // namespace pydag
