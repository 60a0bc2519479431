// SPDX-License-Identifier: Apache-2.0
//
// Makes equal parts of a DAG one object ("hash consing").
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Nodes are equal by class, keys in the order in which they were filled in, aux_data and children;
// leaves by identity, values by type and `==`. Of equal nodes the first one stays; it is rebuilt only if
// something below it was merged. If nothing is merged, the same tree comes back.
nb::object intern(nb::handle tree, const FlattenOptions &options);

}  // namespace pydag
