// SPDX-License-Identifier: Apache-2.0
//
// The leaves of a DAG, one after the other: a leaf comes when it is first reached.
//
// The children of a node are taken when it is opened, so what is done to it later isn't seen. All that
// was met is owned until the last leaf has come, or the iterator goes: it is known by address.
#pragma once

#include "walks/options.h"

namespace pydag {

// A Python iterator. RuntimeError where a callback of its own walk asks it for the next leaf.
nb::object make_iterator(nb::handle tree, const FlattenOptions &options);

// Makes its type, with the module.
void make_iterator_type();

}  // namespace pydag
