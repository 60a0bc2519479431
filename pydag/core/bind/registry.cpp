// SPDX-License-Identifier: Apache-2.0
#include "types/registry.h"
#include "base/constants.h"
#include "base/error.h"
#include "bind/bind.h"
#include "rewrites/deref.h"
#include "spec/cache.h"
#include "types/fields.h"
#include "types/key_table.h"
#include "types/own_registrations.h"
#include "types/tuple_class.h"

namespace pydag {

void bind_registry(nb::module_ &module) {
    KeysBox::ready("pydag._core.Keys", "The keys of a mapping node.");
    RegistrationBox::ready("pydag._core.Registration", "How a class is opened and built.");

    module.def(
        "register_node",
        [](nb::object type, nb::object flatten, nb::object unflatten, nb::object path_entry_type, nb::object namespace_,
           bool has_identity) {
            nb::object box = RegistrationBox::make();
            Registration &registration = RegistrationBox::of(box);
            registration.type = std::move(type);
            registration.flatten = std::move(flatten);
            registration.unflatten = std::move(unflatten);
            registration.path_entry_type = std::move(path_entry_type);
            registration.namespace_ = std::move(namespace_);
            registration.resolve_fields = nb::none();
            registration.has_identity = has_identity;
            add_registration(std::move(box));
        },
        nb::sig("def register_node(type: type, flatten: object, unflatten: object, path_entry_type: type, "
                "namespace: str, has_identity: bool, /) -> None"));
    module.def(
        "register_fields",
        [](nb::object type, nb::object resolve_fields, nb::object path_entry_type, nb::object namespace_,
           bool has_identity, bool is_module) {
            nb::object box = RegistrationBox::make();
            Registration &registration = RegistrationBox::of(box);
            registration.type = std::move(type);
            registration.flatten = nb::none();
            registration.unflatten = nb::none();
            registration.resolve_fields = std::move(resolve_fields);
            registration.path_entry_type = std::move(path_entry_type);
            registration.namespace_ = std::move(namespace_);
            registration.has_identity = has_identity;
            registration.is_fields = true;
            registration.is_module = is_module;
            add_registration(std::move(box));
        },
        nb::sig("def register_fields(type: type, resolve_fields: object, path_entry_type: type, namespace: str, "
                "has_identity: bool, is_module: bool, /) -> None"));
    // Makes a registration for a class of another library, for the lookup that `set_lookup` is given. The class is
    // opened by its fields if `resolve_fields` is given and its instances hold nothing but attributes; else by the two
    // functions.
    module.def(
        "foreign_registration",
        [](nb::object type, nb::object flatten, nb::object unflatten, nb::object path_entry_type,
           nb::object resolve_fields, bool is_strict, bool is_module, bool leaves_are_values) {
            nb::object box = RegistrationBox::make();
            Registration &registration = RegistrationBox::of(box);
            registration.is_fields = !resolve_fields.is_none() && has_plain_layout(type);
            registration.type = std::move(type);
            registration.flatten = std::move(flatten);
            registration.unflatten = std::move(unflatten);
            registration.path_entry_type = std::move(path_entry_type);
            registration.namespace_ = nb::borrow(constants.empty_text);
            registration.resolve_fields = std::move(resolve_fields);
            registration.is_foreign = true;
            registration.is_strict = is_strict;
            registration.is_module = is_module;
            registration.leaves_are_values = leaves_are_values;
            return box;
        },
        nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg() = false,
        nb::sig("def foreign_registration(type: type, flatten: object, unflatten: object, path_entry_type: type, "
                "resolve_fields: object, is_strict: bool, is_module: bool, leaves_are_values: "
                "bool = False, /) -> object"));
    // Lets the core open the instances of a class of another library by the library's own function. `names` are those
    // of the children of all instances, None if they have none, or (instance, count) -> the names or None. In the last
    // case `open_with_keys` may open an instance with a key for each child: see Registration.
    module.def(
        "name_children",
        [](nb::handle registration, nb::object flatten, nb::object names, nb::object open_with_keys) {
            if (!RegistrationBox::check(registration))
                fail(PyExc_TypeError, "expected a registration, got %U.", short_repr(registration).ptr());
            if (open_with_keys.is_none()) open_with_keys.reset();
            const Locked locked(registration.ptr());
            std::swap(RegistrationBox::of(registration).library_flatten, flatten);
            std::swap(RegistrationBox::of(registration).names, names);
            std::swap(RegistrationBox::of(registration).open_with_keys, open_with_keys);
        },
        nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none() = nb::none(),
        nb::sig("def name_children(registration: object, flatten: object, names: object, "
                "open_with_keys: object = None, /) -> None"));
    // The core reads the names from keys of this class itself, of instances of the registered class from now on.
    module.def(
        "read_names_of_keys",
        [](nb::handle registration, nb::handle key_class, nb::handle attribute, nb::handle name_class) {
            if (!RegistrationBox::check(registration) || !PyType_Check(key_class.ptr()) ||
                !is_exact_str(attribute.ptr()) || !PyType_Check(name_class.ptr()))
                fail(PyExc_TypeError, "expected a registration, a class, a str and a class.");
            nb::object added = nb::make_tuple(key_class, attribute, name_class);
            const Locked locked(registration.ptr());
            nb::object &known = RegistrationBox::of(registration).plain_keys;
            nb::object all = known.is_valid() ? checked(PySequence_Concat(known.ptr(), added.ptr())) : std::move(added);
            std::swap(known, all);
        },
        nb::sig("def read_names_of_keys(registration: object, key_class: type, attribute: str, name_class: type, /) "
                "-> None"));
    // Sets the path entry type of a class of another library, which may be known only after the class was opened.
    module.def(
        "set_path_entry_type",
        [](nb::handle registration, nb::object path_entry_type) {
            if (!RegistrationBox::check(registration))
                fail(PyExc_TypeError, "expected a registration, got %U.", short_repr(registration).ptr());
            const Locked locked(registration.ptr());
            std::swap(RegistrationBox::of(registration).path_entry_type, path_entry_type);
        },
        nb::sig("def set_path_entry_type(registration: object, path_entry_type: type, /) -> None"));
    module.def(
        "unregister",
        [](nb::object type, nb::object namespace_) {
            if (is_deref_class(type))
                fail(PyExc_ValueError, "%R is a part of pydag and cannot be unregistered.", type.ptr());
            const nb::object box = remove_registration(type, namespace_);
            const Registration &registration = RegistrationBox::of(box);
            return nb::make_tuple(registration.flatten, registration.unflatten, registration.path_entry_type);
        },
        nb::sig("def unregister(type: type, namespace: str, /) -> tuple[object, object, type]"));
    module.def(
        "find_registration",
        [](nb::handle type, nb::handle namespace_) -> nb::object {
            const nb::object box = find_registration(type, namespace_);
            if (!box.is_valid()) return nb::none();
            const Registration &registration = RegistrationBox::of(box);
            return nb::make_tuple(registration.flatten, registration.unflatten, registration.path_entry_type,
                                  registration.namespace_);
        },
        nb::sig("def find_registration(type: type, namespace: str, /) -> tuple[object, object, type, str] | None"));
    // As optree's functions of these names do, but remembering nothing: optree may remember what a class was that
    // is gone, and whose address another one has.
    const auto has_kind = [](nb::handle object, Kind kind) {
        return PyType_Check(object.ptr()) &&
               kind_of_tuple_class(reinterpret_cast<PyTypeObject *>(object.ptr())) == kind;
    };
    module.def(
        "is_namedtuple_class", [=](nb::handle cls) { return has_kind(cls, Kind::kNamedTuple); },
        nb::sig("def is_namedtuple_class(cls: object, /) -> bool"));
    module.def(
        "is_structseq_class", [=](nb::handle cls) { return has_kind(cls, Kind::kStructSequence); },
        nb::sig("def is_structseq_class(cls: object, /) -> bool"));
    module.def(
        "structseq_fields", [](nb::type_object cls) { return names_of_struct_sequence(cls); },
        nb::sig("def structseq_fields(cls: type, /) -> tuple[str, ...]"));
    module.def(
        "check_namespace", [](nb::handle name) { namespace_text(name); }, nb::arg().none(),
        nb::sig("def check_namespace(name: object, /) -> None"));
    module.def("is_module", is_module, nb::sig("def is_module(cls: type, namespace: str, /) -> bool"));
    module.def("own_slots", own_slots, nb::sig("def own_slots(cls: type, /) -> list[str]"));
    module.def("registered_classes", registered_classes, nb::sig("def registered_classes() -> list[tuple[str, type]]"));
    module.def("set_lookup", set_lookup,
               nb::sig("def set_lookup(find_foreign: object, is_value: object, is_insertion_ordered: object, /) "
                       "-> None"));
    module.def(
        "set_value_base", [](nb::type_object base) { set_value_base(base); },
        nb::sig("def set_value_base(base: type, /) -> None"));
    module.def("set_identity_everywhere", set_identity_everywhere,
               nb::sig("def set_identity_everywhere(cls: type, /) -> None"));
    module.def("watch_registry", watch_registry, nb::sig("def watch_registry(dict: dict, /) -> None"));
    module.def(
        "clear_caches",
        [] {
            forget_specs();
            forget_keys();
            forget_types();
        },
        nb::sig("def clear_caches() -> None"));
}

}  // namespace pydag
