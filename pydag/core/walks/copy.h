// SPDX-License-Identifier: Apache-2.0
//
// A DAG with new containers and the same leaves, shared alike.
#pragma once

#include "walks/options.h"

namespace pydag {

nb::object copy(nb::handle tree, const FlattenOptions &options);

}  // namespace pydag
