// SPDX-License-Identifier: Apache-2.0
#include "types/classes.h"

#include "base/buffer.h"
#include "base/constants.h"
#include "base/error.h"
#include "base/text_hash.h"
#include "base/threads.h"
#include "base/tuples.h"
#include "types/class_table.h"
#include "types/fields.h"

#include <structmember.h>

#include <algorithm>
#include <new>

namespace pydag {
namespace {

// Null where the class has none, or its metaclass fails to say. Without memory, or at the end of the stack,
// that isn't known.
nb::object attribute_of(PyTypeObject *type, const char *name) {
    nb::object value = nb::steal(PyObject_GetAttrString(as_object(type), name));
    if (value.is_valid()) return value;
    const bool is_unknown = !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
                            PyErr_ExceptionMatches(PyExc_RecursionError);
    if (is_unknown) nb::raise_python_error();
    PyErr_Clear();
    return value;
}

bool has_method(PyTypeObject *type, const char *name) {
    const nb::object method = attribute_of(type, name);
    return method.is_valid() && PyCallable_Check(method.ptr());
}

bool has_number(PyTypeObject *type, const char *name) {
    const nb::object number = attribute_of(type, name);
    return number.is_valid() && PyLong_CheckExact(number.ptr());
}

// C code alone makes such classes, and nobody can derive from one.
bool is_struct_sequence(PyTypeObject *type) {
    const bool may_be = type->tp_base == &PyTuple_Type && !PyType_HasFeature(type, Py_TPFLAGS_BASETYPE);
    return may_be && has_number(type, "n_fields") && has_number(type, "n_sequence_fields") &&
           has_number(type, "n_unnamed_fields");
}

// Whether it is a tuple of strings.
bool are_names(PyObject *object) {
    if (!PyTuple_CheckExact(object) || !is_filled(object)) return false;
    PyObject *const *const first = &PyTuple_GET_ITEM(object, 0);
    return std::all_of(first, first + PyTuple_GET_SIZE(object), is_exact_str);
}

bool is_namedtuple(PyTypeObject *type) {
    const nb::object names = attribute_of(type, "_fields");
    return names.is_valid() && are_names(names.ptr()) && has_method(type, "_make") && has_method(type, "_asdict");
}

ClassTable<uint64_t> &known_hashes() { return OwnOfThread<ClassTable<uint64_t>>::get(); }

uint64_t hash_of_name(PyTypeObject *type) {
    if (!is_heap_type(type)) {
        uint64_t hash = 1;
        for (const char *c = type->tp_name; *c; ++c) hash = mix(hash, static_cast<unsigned char>(*c));
        return hash;
    }
    uint64_t hash = mix_if_text(2, reinterpret_cast<PyHeapTypeObject *>(type)->ht_qualname);
    const nb::object attributes = dict_of_class(type);
    hash = mix_if_text(hash, find_by_address(attributes.ptr(), constants.module).ptr());
    const nb::object owned_names = find_by_address(attributes.ptr(), constants.fields);
    PyObject *const names = owned_names.ptr();
    const bool has_names = names && PyTuple_CheckExact(names) && PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS);
    for (Py_ssize_t i = 0; has_names && i < PyTuple_GET_SIZE(names); ++i)
        hash = mix_if_text(hash, PyTuple_GET_ITEM(names, i));
    return hash;
}

void remember(PyTypeObject *type, uint64_t hash) {
    nb::object weakref = weak_reference_to(type);
    if (known_hashes().is_full()) known_hashes().make_room();
    known_hashes().add({type, std::move(weakref), hash});
}

}  // namespace

Kind kind_of_tuple_class(PyTypeObject *type) {
    if (type == &PyTuple_Type || !PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS)) return Kind::kLeaf;
    if (is_struct_sequence(type)) return Kind::kStructSequence;
    return is_namedtuple(type) ? Kind::kNamedTuple : Kind::kLeaf;
}

// What `collections.namedtuple` puts into a class is looked for in the class itself, key by key by address.
std::optional<Kind> plain_kind_of_tuple_class(PyTypeObject *type) {
    if (!PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS)) return Kind::kLeaf;
    if (!PyType_HasFeature(type, Py_TPFLAGS_BASETYPE)) return std::nullopt;
    const nb::object attributes = dict_of_class(type);
    const Locked locked(attributes.ptr());
    bool has_fields = false, has_make = false, has_as_dict = false;
    Py_ssize_t position = 0;
    for (PyObject *key, *value; PyDict_Next(attributes.ptr(), &position, &key, &value);) {
        if (key == constants.fields) has_fields = are_names(value);
        else if (key == constants.make) has_make = Py_IS_TYPE(value, &PyClassMethod_Type);
        else if (key == constants.as_dict) has_as_dict = PyFunction_Check(value);
        else continue;
        if (has_fields && has_make && has_as_dict) return Kind::kNamedTuple;
    }
    return std::nullopt;
}

nb::object names_of_tuple_class(nb::handle cls) {
    if (is_struct_sequence(reinterpret_cast<PyTypeObject *>(cls.ptr()))) return names_of_struct_sequence(cls);
    return checked(PyObject_GetAttr(cls.ptr(), constants.fields));
}

nb::object names_of_struct_sequence(nb::handle cls) {
    auto *const type = reinterpret_cast<PyTypeObject *>(cls.ptr());
    if (!is_struct_sequence(type))
        fail(PyExc_TypeError, "Expected a class of struct sequences, got %U.", short_repr(cls).ptr());
    constexpr size_t kMost = 10'000;
    const nb::object size = attribute_of(type, "n_sequence_fields");
    const size_t count = size.is_valid() && PyLong_CheckExact(size.ptr()) ? PyLong_AsSize_t(size.ptr()) : 0;
    PyErr_Clear();
    if (count > kMost) fail(PyExc_TypeError, "%R says nonsense about its fields.", cls.ptr());
    const nb::object unnamed = checked(PyUnicode_InternFromString(PyStructSequence_UnnamedField));
    RefBuffer<16> names;
    for (size_t i = 0; i < count; ++i) names.push_borrowed(unnamed.ptr());
    for (const PyMemberDef *member = type->tp_members; member && member->name; ++member) {
        const size_t index =
            (static_cast<size_t>(member->offset) - offsetof(PyTupleObject, ob_item)) / sizeof(PyObject *);
        if (index < count) names.replace(index, checked(PyUnicode_InternFromString(member->name)));
    }
    return names.take_tuple();
}

bool is_of_numpy(PyTypeObject *type, std::string_view name) {
    const nb::object bases = mro_of(type);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases.ptr()); ++i) {
        auto *const base = reinterpret_cast<PyTypeObject *>(PyTuple_GET_ITEM(bases.ptr(), i));
        if (!is_heap_type(base) && base->tp_name == name) return true;
    }
    return false;
}

uint64_t hash_of_class(PyTypeObject *type) {
    if (const auto *const known = known_hashes().find(type)) return known->value;
    const uint64_t hash = hash_of_name(type);
    try {
        remember(type, hash);
    } catch (const std::bad_alloc &) {
    } catch (nb::python_error &) {
    }
    return hash;
}

}  // namespace pydag
