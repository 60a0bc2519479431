// SPDX-License-Identifier: Apache-2.0
//
// Iterates over the leaves of a DAG: each leaf comes when it is first reached.
//
// The children of a node are taken when it is opened, so later changes of the node aren't seen. All objects
// that were met are known by address, so they are owned until the iterator is exhausted or dies.
#pragma once

#include "walks/options.h"

namespace pydag {

// A Python iterator. RuntimeError if a callback of its own walk asks it for the next leaf, or if
// threads would wait for each other for ever.
nb::object make_iterator(nb::handle tree, const FlattenOptions &options);

// Makes the type of these iterators, when the module is made.
void make_iterator_type();

}  // namespace pydag
