// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a call to a compiled function, in the form in which they are flattened: static ones as leaves, names
// in the order of the signature.
#pragma once

#include "base/tuples.h"
#include "structure/structure.h"
#include "walks/flatten.h"

namespace pydag {

struct CallArguments {
    Leaves values;                 // those by position, then those by name
    Buffer<PyObject *, 16> names;  // borrowed

    size_t num_by_position() const { return values.size() - names.size(); }
    nb::object args() const { return tuple_of(values.data(), num_by_position()); }
    nb::object kwargs() const { return dict_of(names.data(), values.data() + num_by_position(), names.size()); }
};

// Whether each argument is a leaf and there are few, as in `step(x, y, rate=z)`, by the structure of a tree: a tuple of
// the arguments and the keyword arguments. Calls with such a structure are recognized without a walk.
bool is_bare(nb::handle tree, const Structure &structure);
// Whether arguments have such a structure. May be false although they do.
bool are_bare_arguments(const CallArguments &arguments, const Structure &structure, const FlattenOptions &options);

}  // namespace pydag
