// SPDX-License-Identifier: Apache-2.0
//
// A spec made of a node that holds specs.
#pragma once

#include "walks/options.h"

namespace pydag {

// The spec of `collection`, a node of any kind in whose slots specs stand. What they share within is
// kept; nothing is shared between them, also where one spec stands in two slots. Anything that is no
// node gives the spec of a leaf, with a warning. ValueError where the specs don't go together.
nb::object collect_specs(nb::handle collection, const FlattenOptions &options);

}  // namespace pydag
