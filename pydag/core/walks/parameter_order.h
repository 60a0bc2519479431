// SPDX-License-Identifier: Apache-2.0
//
// The order in which a fold gives a function the results for a node's children.
//
// If a class's fields are what its instances have, they are traversed by name, so that the structure doesn't depend on
// the order in which `__init__` sets them. A function that takes the children by their index expects the order of the
// parameters of `__init__`.
#pragma once

#include "base/tuples.h"
#include "types/kind.h"

#include <map>
#include <vector>

namespace pydag {

class ParameterOrder {
public:
    // The results for a node's children, in the order of the parameters if each child has the name of one; else in the
    // order of traversal. `results`: a tuple that nobody else has.
    nb::object arrange(Kind kind, PyObject *const *refs, nb::object results);

private:
    using Order = std::vector<uint32_t>;  // the index of each result; empty: they stay
    static Order order_of(nb::handle type, const struct Keys &names);

    std::map<std::pair<PyObject *, PyObject *>, Order> orders_;  // by registration and names
};

}  // namespace pydag
