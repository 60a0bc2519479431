// SPDX-License-Identifier: Apache-2.0
//
// What can be read off a class itself, whether it is registered or not.
#pragma once

#include "base/capi.h"
#include "types/kind.h"

#include <optional>
#include <string_view>

namespace pydag {

// The kind of the instances of a class that nobody registered: kNamedTuple, kStructSequence, or kLeaf for
// neither. Nothing is remembered of the class. For a subclass of tuple its attributes are read, which may run
// Python code.
Kind kind_of_tuple_class(PyTypeObject *type);

// The same without running Python code, for a class without a metaclass; nothing where code might have to run.
std::optional<Kind> plain_kind_of_tuple_class(PyTypeObject *type);

// The names of the items of a tuple of such a class.
nb::object names_of_tuple_class(nb::handle cls);
// The same of a struct sequence; those that have none are PyStructSequence_UnnamedField.
nb::object names_of_struct_sequence(nb::handle cls);

// Whether a class is one of NumPy's, which is known by its full name, or inherits from it.
bool is_of_numpy(PyTypeObject *type, std::string_view name);

// The hash of a class, as a part of the hash of a spec: of the name of the class, its module's name, and the `_fields`
// of a namedtuple, so the same in every process. It stays the same for as long as the class lives, whatever names it is
// given. Runs no Python code of the class's, and never fails: without memory a new name counts.
uint64_t hash_of_class(PyTypeObject *type);

}  // namespace pydag
