// SPDX-License-Identifier: Apache-2.0
#include "types/registry.h"
#include "base/constants.h"
#include "base/error.h"
#include "bind/bind.h"
#include "bind/operation.h"
#include "rewrites/rewrites.h"
#include "spec/cache.h"
#include "types/classes.h"
#include "types/fields.h"
#include "types/key_table.h"
#include "types/registration.h"

namespace pydag {

namespace {

// The class is opened by its fields if `resolve_fields` isn't None, else by the two functions.
void register_class(nb::object type, nb::object flatten, nb::object unflatten, nb::object resolve_fields,
                    nb::object path_entry_type, nb::object namespace_, bool has_identity, bool is_module) {
    nb::object box = RegistrationBox::make();
    Registration &registration = RegistrationBox::of(box);
    registration.type = std::move(type);
    registration.flatten = std::move(flatten);
    registration.unflatten = std::move(unflatten);
    registration.is_fields = !resolve_fields.is_none();
    registration.resolve_fields = std::move(resolve_fields);
    registration.path_entry_type = std::move(path_entry_type);
    registration.namespace_ = std::move(namespace_);
    registration.has_identity = has_identity;
    registration.is_module = is_module;
    add_registration(std::move(box));
}

// A registration for a class of another library, for the lookup that `set_lookup` is given. The class is opened by its
// fields if `resolve_fields` is given and its instances hold nothing but attributes; else by the two functions.
nb::object foreign_registration(nb::object type, nb::object flatten, nb::object unflatten, nb::object path_entry_type,
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
}

// Lets the core open the instances of a class of another library by the library's own function. `names` are those of
// the children of all instances, None if they have none, or (instance, count) -> the names or None. In the last case
// `open_with_keys` may open an instance with a key for each child, or is None: see Registration.
void name_children(nb::handle box, nb::object flatten, nb::object names, nb::object open_with_keys) {
    Registration &registration = unboxed<RegistrationBox>(box);
    if (open_with_keys.is_none()) open_with_keys.reset();
    const Locked locked(box.ptr());
    std::swap(registration.library_flatten, flatten);
    std::swap(registration.names, names);
    std::swap(registration.open_with_keys, open_with_keys);
}

// From now on the core itself reads the names from keys of this class, for instances of the registered class.
void read_names_of_keys(nb::handle box, nb::type_object key_class, nb::str attribute, nb::type_object name_class) {
    nb::object &known = unboxed<RegistrationBox>(box).plain_keys;
    if (!is_exact_str(attribute.ptr())) fail(PyExc_TypeError, "expected a str");
    nb::object added = nb::make_tuple(key_class, attribute, name_class);
    const Locked locked(box.ptr());
    nb::object all = known.is_valid() ? checked(PySequence_Concat(known.ptr(), added.ptr())) : std::move(added);
    std::swap(known, all);
}

// The path entry type of a class of another library may be known only after the class was opened.
void set_path_entry_type(nb::handle box, nb::object path_entry_type) {
    Registration &registration = unboxed<RegistrationBox>(box);
    const Locked locked(box.ptr());
    std::swap(registration.path_entry_type, path_entry_type);
}

nb::object unregister(nb::handle type, nb::handle namespace_) {
    if (is_deref_class(type)) fail(PyExc_ValueError, "%R is a part of pydag and cannot be unregistered.", type.ptr());
    const nb::object box = remove_registration(type, namespace_);
    const Registration &registration = RegistrationBox::of(box);
    return nb::make_tuple(registration.flatten, registration.unflatten, registration.path_entry_type);
}

// (flatten, unflatten, path entry type, namespace), or None.
nb::object registration_parts(nb::handle type, nb::handle namespace_) {
    const nb::object box = find_registration(type, namespace_);
    if (!box.is_valid()) return nb::none();
    const Registration &registration = RegistrationBox::of(box);
    return nb::make_tuple(registration.flatten, registration.unflatten, registration.path_entry_type,
                          registration.namespace_);
}

// Like optree's functions, but without remembering: optree may take a class for another at the same address that is
// gone.
template <Kind kind>
bool is_tuple_class(nb::handle object) {
    return PyType_Check(object.ptr()) && kind_of_tuple_class(reinterpret_cast<PyTypeObject *>(object.ptr())) == kind;
}

nb::object structseq_fields(nb::type_object cls) { return names_of_struct_sequence(cls); }
void check_namespace(nb::handle name) { namespace_text(name); }

void clear_caches() {
    forget_specs();
    forget_keys();
    forget_types();
}

const Operation operations[] = {
    operation_of<register_class>("register"),
    operation_of<foreign_registration>("foreign_registration"),
    operation_of<name_children>("name_children"),
    operation_of<read_names_of_keys>("read_names_of_keys"),
    operation_of<set_path_entry_type>("set_path_entry_type"),
    operation_of<unregister>("unregister"),
    operation_of<registration_parts>("find_registration"),
    operation_of<is_tuple_class<Kind::kNamedTuple>>("is_namedtuple_class"),
    operation_of<is_tuple_class<Kind::kStructSequence>>("is_structseq_class"),
    operation_of<structseq_fields>("structseq_fields"),
    operation_of<check_namespace>("check_namespace"),
    operation_of<is_module>("is_module"),
    operation_of<own_slots>("own_slots"),
    operation_of<registered_classes>("registered_classes"),
    operation_of<set_lookup>("set_lookup"),
    operation_of<set_value_base>("set_value_base"),
    operation_of<set_identity_everywhere>("set_identity_everywhere"),
    operation_of<watch_registry>("watch_registry"),
    operation_of<clear_caches>("clear_caches"),
};

}  // namespace

void bind_registry(nb::module_ &module) {
    KeysBox::ready("pydag._core.Keys", "The keys of a mapping node.");
    RegistrationBox::ready("pydag._core.Registration", "How a class is opened and built.");
    add_operations(module, operations);
}

}  // namespace pydag
