// SPDX-License-Identifier: Apache-2.0
//
// The classes of tuples whose items have names.
#pragma once

#include "base/capi.h"
#include "types/kind.h"

#include <optional>

namespace pydag {

// The kind of the instances of a class that nobody registered: kNamedTuple, kStructSequence, or kLeaf for
// neither. Nothing is remembered of the class. For a subclass of tuple its attributes are read, which may run
// Python code.
Kind kind_of_tuple_class(PyTypeObject *type);

// The same without running Python code, for a class without a metaclass; nothing where code might have to run.
std::optional<Kind> plain_kind_of_tuple_class(PyTypeObject *type);

// The names of the items of such a tuple.
nb::object names_of_tuple_class(nb::handle cls);
// The same of a struct sequence; those that have none are PyStructSequence_UnnamedField.
nb::object names_of_struct_sequence(nb::handle cls);

}  // namespace pydag
