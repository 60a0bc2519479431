// SPDX-License-Identifier: Apache-2.0
//
// A spec made of a node that holds specs.
#pragma once

#include "walks/options.h"

namespace pydag {

// The spec of `collection`, a node of any kind whose children are specs. Sharing within each of these specs
// is kept; between them nothing is shared, even if one spec stands in two slots. An object that is no
// node gives the spec of a leaf, with a warning. ValueError if the specs don't go together.
nb::object collect_specs(nb::handle collection, const FlattenOptions &options);

}  // namespace pydag
