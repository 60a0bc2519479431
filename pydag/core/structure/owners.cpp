// SPDX-License-Identifier: Apache-2.0
#include "structure/owners.h"

#include "base/tuples.h"
#include "structure/cursor.h"
#include "structure/downward_order.h"
#include "structure/node_refs.h"

#include <algorithm>
#include <vector>

namespace pydag {
namespace {

using Owners = uint8_t;  // the kinds of owner that a node has along its paths, as bits
constexpr Owners kModule = 1, kOther = 2;

// Whether some node is of a class that is registered with this flag.
bool has_class(const Structure &structure, bool Registration::*flag) {
    return std::any_of(structure.refs, structure.refs + structure.num_refs,
                       [=](PyObject *ref) { return RegistrationBox::check(ref) && RegistrationBox::of(ref).*flag; });
}

// What each node has along its paths.
std::vector<Owners> owners_of(const Structure &structure) {
    const DownwardOrder order(structure);
    std::vector<Owners> owners(structure.num_nodes, 0);
    owners[0] = kOther;
    order.run([&](uint32_t position, uint32_t anchor) {
        if (position > 0) {
            const uint32_t parent = order.link(position).parent;
            const bool is_owner = is_registered(structure.nodes[parent].kind);
            if (!is_owner) owners[position] |= owners[parent];
            else owners[position] |= node_registration(order.link(parent).refs).is_module ? kModule : kOther;
        }
        owners[anchor] |= owners[position];
    });
    return owners;
}

}  // namespace

nb::object value_leaves(const Structure &structure) {
    std::vector<uint32_t> values;
    if (has_class(structure, &Registration::leaves_are_values)) {
        const DownwardOrder order(structure);
        std::vector<uint8_t> is_owner(structure.num_nodes, 0);  // of values
        for (Cursor at(structure); at.is_at_node(); at.step()) {
            const uint32_t position = at.position();
            const bool above = position > 0 && is_owner[order.link(position).parent];
            if (at.node().is_leaf() && above) values.push_back(at.leaf());
            else if (!at.node().is_leaf()) is_owner[position] = are_leaves_values(at.node().kind, at.refs(), above);
        }
    }
    return tuple_of_numbers(values);
}

nb::object module_leaves(const Structure &structure) {
    if (!has_class(structure, &Registration::is_module)) return tuple_of(tuple_of({}, 0), tuple_of({}, 0));
    const std::vector<Owners> owners = owners_of(structure);
    std::vector<uint32_t> owned, mixed;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        if (!at.node().is_leaf() || !(owners[at.position()] & kModule)) continue;
        owned.push_back(at.leaf());
        if (owners[at.position()] & kOther) mixed.push_back(at.leaf());
    }
    return tuple_of(tuple_of_numbers(owned), tuple_of_numbers(mixed));
}

}  // namespace pydag
