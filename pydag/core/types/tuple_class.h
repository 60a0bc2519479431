// SPDX-License-Identifier: Apache-2.0
//
// The classes of tuples whose items have names.
#pragma once

#include "base/capi.h"
#include "types/kind.h"

namespace pydag {

// What the instances of a class are where nobody registered it: kNamedTuple, kStructSequence, or kLeaf for
// neither. Nothing is remembered of the class. Of a subclass of tuple its attributes are asked for, which may
// run Python code.
Kind kind_of_tuple_class(PyTypeObject *type);

// The names of the items of a struct sequence; those that have none are PyStructSequence_UnnamedField.
nb::object names_of_struct_sequence(nb::handle cls);

}  // namespace pydag
