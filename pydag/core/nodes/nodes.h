// SPDX-License-Identifier: Apache-2.0
//
// What is done with a single node besides opening (open.h) and building (build.h) it.
#pragma once

#include "nodes/open.h"

namespace pydag {

// Pushes the children of `object` on `stack`, in the order of the node's children, the last one first.
// ValueError if the object is not of the node's kind, class, arity, keys or aux_data. A dict, an
// OrderedDict and a defaultdict with the same keys are interchangeable; fields are matched by name.
void match_node(Node node, PyObject *const *refs, nb::handle object, Namespace &space, Stack &stack);

// Whether the children of nodes of this kind can be changed in place. A tuple has to be built anew.
bool is_writable(Kind kind, PyObject *const *refs);

// Replaces the children of `object`, all of them, by `children`, and changes nothing else. The object must match the
// node that has these `refs`. One `once` serves all nodes that a walk writes.
void write_children(Kind kind, PyObject *const *refs, PyObject *object, PyObject *const *children, uint32_t count,
                    MadeOnce &once);

// The values of meta fields are compared with the structure, so arrays can't be among them. What has `__dlpack__` is
// taken for an array, whichever library it is of. Builtin containers and partials are looked into; what registered
// objects hold is not.
//
// Whether a value is seen to be no array, nor to hold one, without any code being run.
bool is_surely_no_array(PyObject *value);
// TypeError if one of the values is an array, or holds one. `meta`: a tuple.
void require_no_arrays(const Registration &registration, nb::handle meta);

// What a node has besides its class and its children; optree calls this node data. For a mapping its keys, as a list in
// the order of traversal; for a defaultdict its default factory, too, before them; for a namedtuple or struct sequence
// its class; for a deque its limit; for a custom node its aux_data; for a class that is opened by its fields their
// names, and the values of its meta fields. None for all other nodes.
nb::object node_data(Kind kind, PyObject *const *refs);

// The same for a node that JAX can't open by itself, which becomes Node(type, aux_data, children) in a derefed tree:
// for a deque maxlen, for a custom node its own aux_data, for fields (names, values of the meta fields), and the names
// as they were set where that is another order, for a struct sequence None, for a frozendict its keys (as inserted, as
// traversed). Null for a node that JAX can open.
nb::object aux_of_node(Kind kind, PyObject *const *refs);

// The reverse: adds the references of a node of this class with `count` children. `info`: what the
// class is. The caller owns its registration.
enum class FromAux { kDone, kOtherFields, kNoSuchNode };
FromAux add_refs_from_aux(PyTypeObject *type, const TypeInfo &info, nb::handle aux, uint32_t count, Refs &refs);

}  // namespace pydag
