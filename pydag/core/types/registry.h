// SPDX-License-Identifier: Apache-2.0
//
// Which classes are nodes: those that are registered, here or with another library, and the builtin
// containers.
#pragma once

#include "types/namespace.h"
#include "types/registration.h"

namespace pydag {

// Adds a registration. Raises ValueError if the class has one in that namespace.
void add_registration(nb::object registration);
// Removes a registration and returns it; ValueError if there is none.
nb::object remove_registration(nb::handle type, nb::handle namespace_);
// What a class is in this namespace. Runs Python code. The registration of the result is owned.
TypeInfo look_up_type(PyTypeObject *type, nb::handle namespace_);
// The same without running Python code, for most classes that nobody registered; false for any other class.
bool look_up_plain_type(PyTypeObject *type, nb::handle namespace_, TypeInfo &info);
// The registration of a class as seen from `namespace_`; null if it isn't a registered node there.
nb::object find_registration(nb::handle type, nb::handle namespace_);
// Whether the class is registered, as seen from `namespace_`, as a class of modules.
bool is_module(nb::type_object type, nb::handle namespace_);

namespace detail {
inline constinit PyTypeObject *builtin_classes[kNumKinds] = {};  // owned, for the life of the process
}
// The builtin class whose instances are nodes of this kind; null if there is none.
inline PyTypeObject *builtin_class(Kind kind) { return detail::builtin_classes[static_cast<size_t>(kind)]; }
// False where the class of such nodes came with a later version of Python.
inline bool is_in_this_python(Kind kind) {
    return is_leaf(kind) || is_alias(kind) || has_many_classes(kind) || builtin_class(kind);
}
// Called at import.
void add_builtin_classes();

// Says of which class the instances are leaves with identity, even below nodes whose leaves are values.
void set_identity_everywhere(nb::object type);

// Sets the functions in Python that the lookup calls. `find_foreign(cls, namespace)` returns None or (flatten,
// unflatten, path_entry_type), or a Registration, for a class registered with another library in exactly that
// namespace. `is_value(cls)` returns whether the instances of a leaf class have no identity.
// `is_insertion_ordered(namespace, or_global)` returns a bool.
void set_lookup(nb::object find_foreign, nb::object is_value, nb::object is_insertion_ordered);
// Has `is_value` asked about the classes below this one, too. For the life of the process.
void set_value_base(nb::type_object type);
// Watches another library's registry, a dict by class, or by (namespace, class): any change is counted by
// `num_changes_elsewhere`. `find_foreign` is asked about no class that isn't a key of one of them.
void watch_registry(nb::handle dict);
// Any other number than before means that a watched dict has changed.
uint64_t num_changes_elsewhere();
// Forgets the classes that were registered or unregistered there since the last call.
void forget_changes_elsewhere();
// Whether optree was told to keep the insertion order of dicts.
bool is_dict_insertion_ordered(nb::handle namespace_, bool or_global);

}  // namespace pydag
