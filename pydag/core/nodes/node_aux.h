// SPDX-License-Identifier: Apache-2.0
//
// A node that JAX can't open by itself becomes Node(type, aux_data, children) in a derefed tree. This makes
// that aux_data: everything about the node but its class and its children.
#pragma once

#include "structure/structure.h"
#include "types/registry.h"

namespace pydag {

// What a node has besides its class and its children; optree calls this node data. For a mapping its keys, as a list in
// the order of traversal; for a defaultdict its default factory, too, before them; for a namedtuple or struct sequence
// its class; for a deque its limit; for a custom node its aux_data; for a class that is opened by its fields their
// names, and the values of its meta fields. None for all other nodes.
nb::object node_data(Kind kind, PyObject *const *refs);

// For a deque maxlen, for a custom node its own aux_data, for fields (names, values of the meta fields), and the names
// as they were set where that is another order, for a struct sequence None, for a frozendict its keys (as inserted, as
// traversed). Null for a node that JAX can open.
nb::object aux_of_node(Kind kind, PyObject *const *refs);

// The reverse: adds the references of a node of this class with `count` children. `info`: what the
// class is. The caller owns its registration.
enum class FromAux { kDone, kOtherFields, kNoSuchNode };
FromAux add_refs_from_aux(PyTypeObject *type, const TypeInfo &info, nb::handle aux, uint32_t count, Refs &refs);

}  // namespace pydag
