// SPDX-License-Identifier: Apache-2.0
#include "types/registry.h"

#include "base/constants.h"
#include "base/dict_watch.h"
#include "base/error.h"
#include "base/tuples.h"
#include "types/classes.h"
#include "types/fields.h"
#include "types/registration.h"

#include <algorithm>
#include <atomic>

namespace pydag {

namespace {

// The class that a key of another library's registry is about; null for any other object.
PyObject *class_in_key(PyObject *key) {
    if (PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) == 2) key = PyTuple_GET_ITEM(key, 1);
    return key && PyType_Check(key) ? key : nullptr;
}

// Whether a dict finds the object by its address: classes with another metaclass may be equal to any other.
bool is_found_by_identity(PyObject *object) {
    const PyTypeObject *const type = Py_TYPE(object), &base = PyBaseObject_Type;
    return type->tp_hash == base.tp_hash && type->tp_richcompare == base.tp_richcompare;
}

// Whether such a key is compared by addresses, and by the texts of namespaces.
bool is_plain_key(PyObject *key) {
    if (!PyTuple_CheckExact(key)) return is_found_by_identity(key);
    const bool is_pair = PyTuple_GET_SIZE(key) == 2 && is_filled(key);
    return is_pair && is_exact_str(PyTuple_GET_ITEM(key, 0)) && is_found_by_identity(PyTuple_GET_ITEM(key, 1));
}

// Lives as long as the process: destroying it after the interpreter is gone would crash.
struct Globals {
    nb::object find_foreign, is_value, is_insertion_ordered, class_with_identity_everywhere;
    DictWatch registries{class_in_key, is_plain_key};
    std::atomic<PyTypeObject *> value_base = nullptr;  // owned, for the life of the process
};
Globals &globals() {
    static Globals *const instance = new Globals;
    return *instance;
}

bool may_be_foreign(nb::handle namespace_, nb::handle type) {
    if (!is_found_by_identity(type.ptr())) return true;
    if (PyUnicode_GET_LENGTH(namespace_.ptr()) == 0) return globals().registries.has(type);
    return globals().registries.has(checked(PyTuple_Pack(2, namespace_.ptr(), type.ptr())));
}

nb::object find_foreign(nb::handle namespace_, nb::handle type) {
    if (!globals().find_foreign.is_valid() || !may_be_foreign(namespace_, type)) return nb::object();
    const nb::object answer = call(globals().find_foreign, type, namespace_);
    if (answer.is_none()) return nb::object();
    if (RegistrationBox::check(answer)) return answer;
    nb::object box = RegistrationBox::make();
    Registration &registration = RegistrationBox::of(box);
    registration.is_foreign = true;
    registration.type = nb::borrow(type);
    registration.namespace_ = nb::borrow(namespace_);
    registration.flatten = nb::object(answer[0]);
    registration.unflatten = nb::object(answer[1]);
    registration.path_entry_type = nb::object(answer[2]);
    return box;
}

// kLeaf if it is none of them.
Kind builtin_kind(PyTypeObject *type) {
    const PyTypeObject *const *const classes = detail::builtin_classes;
    const size_t found = static_cast<size_t>(std::find(classes, classes + kNumKinds, type) - classes);
    return found < kNumKinds ? static_cast<Kind>(found) : Kind::kLeaf;
}

// That of a class whose instances are leaves with identity.
Identity identity_of_leaf(PyTypeObject *type) {
    const nb::handle everywhere = globals().class_with_identity_everywhere;
    return everywhere.is(nb::handle(as_object(type))) ? kLeafEverywhere : kObjectLeaf;
}

// Most classes are made by `class`, without a metaclass: they are no enums, and their instances no classes. So they
// have an identity, and nobody has to be asked; but for those that another library says are values.
bool is_plain_class(PyTypeObject *type) {
    PyTypeObject *const base = globals().value_base.load(std::memory_order_acquire);
    return is_heap_type(type) && Py_TYPE(type) == &PyType_Type && !PyType_HasFeature(type, Py_TPFLAGS_TYPE_SUBCLASS) &&
           !(base && PyType_IsSubtype(type, base));
}

TypeInfo classify_unregistered(nb::handle cls) {
    auto *const type = reinterpret_cast<PyTypeObject *>(cls.ptr());
    const Kind kind = kind_of_tuple_class(type);
    if (!is_leaf(kind)) return {nullptr, kind, kNoIdentity};
    if (is_plain_class(type)) return {nullptr, Kind::kLeaf, identity_of_leaf(type)};
    const nb::object ask = globals().is_value;
    const bool is_value = ask.is_valid() && call(ask, cls).is(nb::handle(Py_True));
    return {nullptr, Kind::kLeaf, is_value ? kNoIdentity : identity_of_leaf(type)};
}

}  // namespace

TypeInfo look_up_type(PyTypeObject *type, nb::handle namespace_) {
    const Kind kind = builtin_kind(type);
    if (!is_leaf(kind)) return {nullptr, kind, traits(kind).has_identity ? kObjectNode : kNoIdentity};
    const nb::handle cls(as_object(type));
    nb::object found = find_registration(cls, namespace_);
    if (!found.is_valid()) return classify_unregistered(cls);
    Registration &registration = RegistrationBox::of(found);
    if (registration.is_fields) resolve_fields(registration);
    const Identity identity = registration.has_identity ? kObjectNode : kNoIdentity;
    const Kind node_kind = registration.is_fields ? Kind::kFields : Kind::kCustom;
    return {found.release().ptr(), node_kind, identity};
}

bool look_up_plain_type(PyTypeObject *type, nb::handle namespace_, TypeInfo &info) {
    if (!is_plain_class(type) || !globals().registries.is_quiet()) return false;
    const std::optional<Kind> kind = plain_kind_of_tuple_class(type);
    if (!kind) return false;
    const nb::handle cls(as_object(type)), global = constants.empty_text;
    const bool is_named = PyUnicode_GET_LENGTH(namespace_.ptr()) > 0;
    if (find_own(global, cls).is_valid() || may_be_foreign(global, cls)) return false;
    if (is_named && (find_own(namespace_, cls).is_valid() || may_be_foreign(namespace_, cls))) return false;
    info = {nullptr, *kind, is_leaf(*kind) ? identity_of_leaf(type) : kNoIdentity};
    return true;
}

nb::object find_registration(nb::handle type, nb::handle namespace_) {
    const nb::handle global = constants.empty_text;
    nb::object found;
    if (PyUnicode_GET_LENGTH(namespace_.ptr()) > 0) {
        found = find_own(namespace_, type);
        if (!found.is_valid()) found = find_foreign(namespace_, type);
    }
    if (!found.is_valid()) found = find_own(global, type);
    if (!found.is_valid()) found = find_foreign(global, type);
    return found;
}

bool is_module(nb::type_object type, nb::handle namespace_) {
    const NamespaceRef space = Namespace::get(namespace_);
    const TypeInfo info = space->find(reinterpret_cast<PyTypeObject *>(type.ptr()));
    return info.registration && RegistrationBox::of(info.registration).is_module;
}

void add_registration(nb::object box) {
    const Registration &registration = RegistrationBox::of(box);
    const nb::handle type = registration.type;
    if (!PyType_Check(type.ptr())) fail(PyExc_TypeError, "Expected a class, got %U.", short_repr(type).ptr());
    if (!PyUnicode_CheckExact(registration.namespace_.ptr()))
        fail(PyExc_TypeError, "The namespace must be a string, got %U.", short_repr(registration.namespace_).ptr());
    namespace_text(registration.namespace_);  // checks it
    if (!is_leaf(builtin_kind(reinterpret_cast<PyTypeObject *>(type.ptr()))))
        fail(PyExc_ValueError, "PyTree type %R is a built-in type and cannot be re-registered.", type.ptr());
    if (registration.is_fields && !has_plain_layout(type))
        fail(PyExc_TypeError,
             "%R can't be registered by its fields: its instances hold more than attributes. Register "
             "it with register_pydag_node.",
             type.ptr());
    if (!add_own(box)) {
        if (PyUnicode_GET_LENGTH(registration.namespace_.ptr()) == 0)
            fail(PyExc_ValueError, "PyTree type %R is already registered in the global namespace.", type.ptr());
        fail(PyExc_ValueError, "PyTree type %R is already registered in namespace %R.", type.ptr(),
             registration.namespace_.ptr());
    }
    forget_type(reinterpret_cast<PyTypeObject *>(type.ptr()));
}

nb::object remove_registration(nb::handle type, nb::handle namespace_) {
    if (PyType_Check(type.ptr()) && !is_leaf(builtin_kind(reinterpret_cast<PyTypeObject *>(type.ptr()))))
        fail(PyExc_ValueError, "PyTree type %R is a built-in type and cannot be unregistered.", type.ptr());
    if (!PyUnicode_CheckExact(namespace_.ptr()))
        fail(PyExc_TypeError, "The namespace must be a string, got %U.", short_repr(namespace_).ptr());
    namespace_text(namespace_);  // checks it
    nb::object found = remove_own(namespace_, type);
    if (!found.is_valid()) {
        if (PyUnicode_GET_LENGTH(namespace_.ptr()) == 0)
            fail(PyExc_ValueError, "PyTree type %R is not registered in the global namespace.", type.ptr());
        fail(PyExc_ValueError, "PyTree type %R is not registered in namespace %R.", type.ptr(), namespace_.ptr());
    }
    forget_type(reinterpret_cast<PyTypeObject *>(type.ptr()));
    return found;
}

void set_lookup(nb::object find_foreign, nb::object is_value, nb::object is_insertion_ordered) {
    globals().find_foreign = std::move(find_foreign);
    globals().is_value = std::move(is_value);
    globals().is_insertion_ordered = std::move(is_insertion_ordered);
    forget_types();
}

void set_value_base(nb::type_object type) {
    globals().value_base.store(reinterpret_cast<PyTypeObject *>(incref(type.ptr())), std::memory_order_release);
    forget_types();
}

void set_identity_everywhere(nb::object type) {
    globals().class_with_identity_everywhere = std::move(type);
    forget_types();
}

void add_builtin_classes() {
    const std::pair<Kind, PyTypeObject *> classes[] = {
        {Kind::kNone, Py_TYPE(Py_None)},     {Kind::kTuple, &PyTuple_Type},
        {Kind::kList, &PyList_Type},         {Kind::kDict, &PyDict_Type},
        {Kind::kOrderedDict, &PyODict_Type}, {Kind::kDefaultDict, constants.default_dict},
        {Kind::kDeque, constants.deque},     {Kind::kFrozenDict, constants.frozen_dict},
    };
    for (const auto &[kind, type] : classes) {
        if (type) incref(as_object(type));
        detail::builtin_classes[static_cast<size_t>(kind)] = type;
    }
}

void watch_registry(nb::handle dict) { globals().registries.add(dict); }

uint64_t num_changes_elsewhere() { return globals().registries.num_changes(); }

void forget_changes_elsewhere() {
    const DictChanges changes = globals().registries.take_changes();
    if (changes.are_unknown) return forget_types();
    for (int i = 0; i < changes.num_keys; ++i) forget_type(reinterpret_cast<PyTypeObject *>(changes.keys[i]));
}

bool is_dict_insertion_ordered(nb::handle namespace_, bool or_global) {
    const nb::object ask = globals().is_insertion_ordered;
    return ask.is_valid() && call(ask, namespace_, nb::handle(or_global ? Py_True : Py_False)).is(nb::handle(Py_True));
}

}  // namespace pydag
