// SPDX-License-Identifier: Apache-2.0
//
// The objects that a DAG shares.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// (spec, the shared objects in the order of their numbers)
nb::object shared_objects_of(nb::handle tree, const FlattenOptions &options);

}  // namespace pydag
