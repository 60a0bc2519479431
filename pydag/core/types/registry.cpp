// SPDX-License-Identifier: Apache-2.0
#include "types/registry.h"

#include "base/constants.h"
#include "base/dict_watch.h"
#include "base/error.h"
#include "types/fields.h"
#include "types/own_registrations.h"
#include "types/tuple_class.h"

#include <algorithm>

namespace pydag {

namespace {

// Lives as long as the process: destroying it after the interpreter is gone would crash.
struct Globals {
    nb::object find_foreign, is_value, is_insertion_ordered;
    DictWatch watch;
    PyTypeObject *builtin_classes[kNumKinds] = {};  // owned, for the life of the process
};
Globals &globals() {
    static Globals *const instance = new Globals;
    return *instance;
}

nb::object find_foreign(nb::handle namespace_, nb::handle type) {
    if (!globals().find_foreign.is_valid()) return nb::object();
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
    const PyTypeObject *const *const classes = globals().builtin_classes;
    const size_t found = static_cast<size_t>(std::find(classes, classes + kNumKinds, type) - classes);
    return found < kNumKinds ? static_cast<Kind>(found) : Kind::kLeaf;
}

TypeInfo classify_unregistered(nb::handle type) {
    const Kind kind = kind_of_tuple_class(reinterpret_cast<PyTypeObject *>(type.ptr()));
    if (!is_leaf(kind)) return {nullptr, kind, kNoIdentity};
    const nb::object ask = globals().is_value;
    const bool is_value = ask.is_valid() && call(ask, type).is(nb::handle(Py_True));
    return {nullptr, Kind::kLeaf, is_value ? kNoIdentity : kObjectLeaf};
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
    forget_types();
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
    forget_types();
    return found;
}

void set_lookup(nb::object find_foreign, nb::object is_value, nb::object is_insertion_ordered) {
    globals().find_foreign = std::move(find_foreign);
    globals().is_value = std::move(is_value);
    globals().is_insertion_ordered = std::move(is_insertion_ordered);
    forget_types();
}

PyTypeObject *builtin_class(Kind kind) { return globals().builtin_classes[static_cast<size_t>(kind)]; }

void set_builtin_class(Kind kind, PyTypeObject *type) {
    incref(as_object(type));
    globals().builtin_classes[static_cast<size_t>(kind)] = type;
}

void watch_registry(nb::handle dict) { globals().watch.add(dict); }

uint64_t num_changes_elsewhere() { return globals().watch.num_changes(); }

bool is_dict_insertion_ordered(nb::handle namespace_, bool or_global) {
    const nb::object ask = globals().is_insertion_ordered;
    return ask.is_valid() && call(ask, namespace_, nb::handle(or_global ? Py_True : Py_False)).is(nb::handle(Py_True));
}

}  // namespace pydag
