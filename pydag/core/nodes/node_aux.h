// SPDX-License-Identifier: Apache-2.0
//
// Nodes that JAX can't open by itself stand in a derefed tree as Node(type, aux_data, children). This is
// the aux_data: all that the node is besides its class and its children.
#pragma once

#include "structure/structure.h"
#include "types/registry.h"

namespace pydag {

// Of a deque maxlen, of a custom node its own aux_data, of fields (names, values of the meta fields), of
// a struct sequence None. Null for a node that JAX can open.
nb::object aux_of_node(Kind kind, PyObject *const *refs);

// The same back: adds the references of a node of this class with `count` children. `info`: what the
// class is. The caller owns its registration.
enum class FromAux { kDone, kOtherFields, kNoSuchNode };
FromAux add_refs_from_aux(PyTypeObject *type, const TypeInfo &info, nb::handle aux, uint32_t count, Refs &refs);

}  // namespace pydag
