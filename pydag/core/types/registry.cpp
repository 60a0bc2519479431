// SPDX-License-Identifier: Apache-2.0
#include "types/registry.h"

#include "base/constants.h"
#include "base/error.h"
#include "base/identity_table.h"
#include "spec/cache.h"
#include "types/fields.h"
#include "types/own_registrations.h"
#include "types/type_table.h"

#include <memory>
#include <new>
#include <string>
#include <unordered_map>

namespace pydag {

namespace {

// Lives as long as the process: destroying it after the interpreter is gone would crash.
struct Globals {
    std::unordered_map<std::string, std::unique_ptr<Namespace>> namespaces;
    Namespace *global = nullptr;
    nb::object find_foreign, classify_leaf, is_insertion_ordered;
    DictWatch watch;
    uint64_t epoch = 0;  // how often the tables have been emptied
};
Globals &globals() {
    static Globals *const instance = new Globals;
    return *instance;
}

nb::object find_foreign(nb::handle namespace_, nb::handle type) {
    if (!globals().find_foreign.is_valid()) return nb::object();
    const nb::object answer = call(globals().find_foreign, type, namespace_);
    if (answer.is_none()) return nb::object();
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

Kind builtin_kind(PyTypeObject *type) {
    if (type == Py_TYPE(Py_None)) return Kind::kNone;
    if (type == &PyTuple_Type) return Kind::kTuple;
    if (type == &PyList_Type) return Kind::kList;
    if (type == &PyDict_Type) return Kind::kDict;
    if (type == &PyODict_Type) return Kind::kOrderedDict;
    if (type == constants.default_dict) return Kind::kDefaultDict;
    if (type == constants.deque) return Kind::kDeque;
    return Kind::kLeaf;
}

TypeInfo classify_unregistered(nb::handle type) {
    if (!globals().classify_leaf.is_valid()) return {nullptr, Kind::kLeaf, kObjectLeaf};
    const std::string answer = text_of(call(globals().classify_leaf, type));
    if (answer == "namedtuple") return {nullptr, Kind::kNamedTuple, kNoIdentity};
    if (answer == "structseq") return {nullptr, Kind::kStructSequence, kNoIdentity};
    return {nullptr, Kind::kLeaf, answer == "object" ? kObjectLeaf : kNoIdentity};
}

PyObject *on_type_death(PyObject *, PyObject *) {
    try {
        forget_types();
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}
PyMethodDef on_type_death_def = {"forget_types", on_type_death, METH_O, nullptr};

PyObject *on_type_death_function = nullptr;

nb::object guard(PyTypeObject *type) {
    if (!is_heap_type(type)) return nb::object();
    return checked(PyWeakref_NewRef(as_object(type), on_type_death_function));
}

}  // namespace

void make_registry() {
    if (!on_type_death_function)
        on_type_death_function = checked(PyCFunction_New(&on_type_death_def, nullptr)).release().ptr();
}

Namespace &Namespace::get(nb::handle name) {
    Globals &state = globals();
    if (state.watch.take_changed()) [[unlikely]]
        forget_types();
    if (!PyUnicode_Check(name.ptr()))
        fail(PyExc_TypeError, "The namespace must be a string, got %U.", short_repr(name).ptr());
    if (PyUnicode_GET_LENGTH(name.ptr()) == 0 && state.global) [[likely]]
        return *state.global;
    std::unique_ptr<Namespace> &slot = state.namespaces[text_of(name)];
    if (!slot) {
        slot = std::make_unique<Namespace>();
        slot->name_ = checked(PyUnicode_FromObject(name.ptr()));  // no subclass
        slot->table_ = new TypeTable;
        if (PyUnicode_GET_LENGTH(name.ptr()) == 0) state.global = slot.get();
    }
    return *slot;
}

// The lookup may run code that gives the object another class, and drops the last reference to this one.
TypeInfo Namespace::look_up_class_of(PyObject *object) {
    for (;;) {
        const nb::object type = class_of(object);
        const TypeInfo info = find(reinterpret_cast<PyTypeObject *>(type.ptr()));
        if (type.is(as_object(Py_TYPE(object)))) return info;
    }
}

TypeInfo Namespace::find_in_table(PyTypeObject *type) {
    if (const TypeInfo *const info = find_known_in_table(type)) return *info;
    // What was looked up counts only if nothing was registered meanwhile.
    for (;;) {
        const uint64_t epoch = globals().epoch;
        nb::object weakref = guard(type);
        const TypeInfo info = look_up(type);
        const nb::object registration = nb::steal(info.registration);
        if (epoch != globals().epoch) continue;
        if (!table_->find(type)) table_->add(type, std::move(weakref), info);
        return *table_->find(type);
    }
}

const TypeInfo *Namespace::find_known_in_table(PyTypeObject *type) {
    const TypeInfo *const info = table_->find(type);
    if (info) recent_[place(type)] = {type, *info};
    return info;
}

// The registration of the result is owned.
TypeInfo Namespace::look_up(PyTypeObject *type) {
    const Kind kind = builtin_kind(type);
    if (kind != Kind::kLeaf) return {nullptr, kind, traits(kind).has_identity ? kObjectNode : kNoIdentity};
    const nb::handle cls(as_object(type));
    nb::object found = find_registration(cls, name_);
    if (!found.is_valid()) return classify_unregistered(cls);
    Registration &registration = RegistrationBox::of(found);
    if (registration.is_fields()) resolve_fields(registration);
    const Identity identity = registration.has_identity ? kObjectNode : kNoIdentity;
    const Kind node_kind = registration.is_fields() ? Kind::kFields : Kind::kCustom;
    return {found.release().ptr(), node_kind, identity};
}

namespace {
bool is_ordered(nb::handle name, PyObject *or_global) {
    const nb::object ask = globals().is_insertion_ordered;
    return ask.is_valid() && call(ask, name, nb::handle(or_global)).is(nb::handle(Py_True));
}
}  // namespace

bool Namespace::is_dict_insertion_ordered() const { return is_ordered(name_, Py_True); }

bool Namespace::is_ordered_itself() const {
    return PyUnicode_GET_LENGTH(name_.ptr()) > 0 && is_ordered(name_, Py_False);
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

void add_registration(nb::object box) {
    const Registration &registration = RegistrationBox::of(box);
    const nb::handle type = registration.type;
    if (!PyType_Check(type.ptr())) fail(PyExc_TypeError, "Expected a class, got %U.", short_repr(type).ptr());
    if (!PyUnicode_CheckExact(registration.namespace_.ptr()))
        fail(PyExc_TypeError, "The namespace must be a string, got %U.", short_repr(registration.namespace_).ptr());
    if (builtin_kind(reinterpret_cast<PyTypeObject *>(type.ptr())) != Kind::kLeaf)
        fail(PyExc_ValueError, "PyTree type %R is a built-in type and cannot be re-registered.", type.ptr());
    if (registration.is_fields() && !has_plain_layout(type))
        fail(PyExc_TypeError,
             "%R can't be registered by its fields: its instances hold more than attributes. Register "
             "it with register_pydag_node.",
             type.ptr());
    if (find_own(registration.namespace_, type).is_valid()) {
        if (PyUnicode_GET_LENGTH(registration.namespace_.ptr()) == 0)
            fail(PyExc_ValueError, "PyTree type %R is already registered in the global namespace.", type.ptr());
        fail(PyExc_ValueError, "PyTree type %R is already registered in namespace %R.", type.ptr(),
             registration.namespace_.ptr());
    }
    add_own(std::move(box));
    forget_types();
}

nb::object remove_registration(nb::handle type, nb::handle namespace_) {
    if (PyType_Check(type.ptr()) && builtin_kind(reinterpret_cast<PyTypeObject *>(type.ptr())) != Kind::kLeaf)
        fail(PyExc_ValueError, "PyTree type %R is a built-in type and cannot be unregistered.", type.ptr());
    if (!PyUnicode_CheckExact(namespace_.ptr()))
        fail(PyExc_TypeError, "The namespace must be a string, got %U.", short_repr(namespace_).ptr());
    nb::object found = find_own(namespace_, type);
    if (!found.is_valid()) {
        if (PyUnicode_GET_LENGTH(namespace_.ptr()) == 0)
            fail(PyExc_ValueError, "PyTree type %R is not registered in the global namespace.", type.ptr());
        fail(PyExc_ValueError, "PyTree type %R is not registered in namespace %R.", type.ptr(), namespace_.ptr());
    }
    remove_own(namespace_, type);  // `found` keeps it alive
    forget_types();
    return found;
}

void set_lookup(nb::object find_foreign, nb::object classify_leaf, nb::object is_insertion_ordered) {
    globals().find_foreign = std::move(find_foreign);
    globals().classify_leaf = std::move(classify_leaf);
    globals().is_insertion_ordered = std::move(is_insertion_ordered);
    forget_types();
}

void watch_registry(nb::handle dict) { globals().watch.add(dict); }

// What is released last, when all tables are new, may run code that comes back here. Until the specs
// are forgotten too, the old tables guard the classes in what is remembered of them.
void forget_types() {
    std::vector<std::unique_ptr<TypeTable>> tables(globals().namespaces.size());
    for (std::unique_ptr<TypeTable> &table : tables) table = std::make_unique<TypeTable>();
    ++globals().epoch;
    auto next = tables.begin();
    for (auto &[name, space] : globals().namespaces) {
        TypeTable *const old = std::exchange(space->table_, next->release());
        next++->reset(old);
        for (Namespace::Recent &recent : space->recent_) recent = {};
    }
    forget_specs();
}

}  // namespace pydag
