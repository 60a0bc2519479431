// SPDX-License-Identifier: Apache-2.0
//
// Makes equal parts of a DAG one object ("hash consing").
#pragma once

#include "walks/flatten.h"

namespace pydag {

// Nodes are equal by class, keys in the order in which they were filled in, aux_data and children;
// leaves by identity, values by type and `==`. Where nothing merges, the very tree comes back. Of
// equal nodes the first one stays, rebuilt only if something below it has merged.
nb::object intern(nb::handle tree, const FlattenOptions &options);

}  // namespace pydag
