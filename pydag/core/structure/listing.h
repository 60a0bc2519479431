// SPDX-License-Identifier: Apache-2.0
//
// A structure as plain records, one for each node in pre-order: views, files and selectors read them, so their cost is
// linear in objects and edges.
#pragma once

#include "structure/structure.h"

namespace pydag {

// A list with a tuple for each node:
//
//   (kind, number, count, entry, attribute, type, detail)
//
// `kind`       the name of the kind, a str
// `number`     for an anchor its own, for an alias its anchor's; else -1
// `count`      the number of children
// `entry`      the entry of the node in its parent; None for the root
// `attribute`  the name, a str, where that entry is an attribute; else None
// `type`       the class of a node; None for leaves and aliases
// `detail`     what a node holds besides its children: for a defaultdict the factory, for a deque
//              maxlen, for a registered class aux_data, for a class with fields a tuple of
//              (name, value) of the meta fields; else None
// Each is an instance of `record_class`, which is `tuple` or a subclass.
nb::object listing(const Structure &structure, nb::handle record_class);

// How the records of such a list are connected: (parents, ends, closed, slots, leaves), lists of positions.
//
// `parents`  of each record the one around it; -1 for the root
// `ends`     where the subtree of each record ends
// `closed`   the records in the order in which their subtrees end
// `slots`    for each shared object a list: its anchor, then its aliases
// `leaves`   the leaves at their anchors
//
// ValueError if the counts don't fit together.
nb::object connections(nb::handle records);

// The name of a kind, an interned str. They are made when the module is.
inline PyObject *kind_names[kNumKinds] = {};
inline PyObject *kind_name(Kind kind) { return kind_names[static_cast<size_t>(kind)]; }
void make_kind_names();
// What is known of each kind: a list of (name, roles of the references, is_mapping, has_identity); the
// roles are texts.
nb::object node_kinds();

// Nodes and leaves, each object once: aliases are not counted.
size_t num_distinct_nodes(const Structure &structure);

// The number of leaves when every path is followed: a Python int.
nb::object num_paths(const Structure &structure);

// A list of (index, kind, type), one for each shared object: `kind` a PyTreeKind, `type` None for a leaf. The listing
// says where the object is held: to write out all paths here could take the square of the depth.
nb::object shared_of(const Structure &structure);

}  // namespace pydag
