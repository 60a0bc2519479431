// SPDX-License-Identifier: Apache-2.0
#include "structure/owners.h"

#include "base/interrupt.h"
#include "base/tuples.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"

#include <algorithm>
#include <vector>

namespace pydag {
namespace {

using Owners = uint8_t;  // the kinds of owner that a node has along its paths, as bits
constexpr Owners kModule = 1, kOther = 2;

bool has_module(const Structure &structure) {
    return std::any_of(structure.refs, structure.refs + structure.num_refs,
                       [](PyObject *ref) { return RegistrationBox::check(ref) && RegistrationBox::of(ref).is_module; });
}

// A node, before the owners are handed down.
struct Item {
    Node node;
    uint32_t parent;  // the parent's position; the root is its own parent
    uint32_t leaf;
    Owners own;  // what the node is to its children; 0: they have the owners of the node
};

// A tuple of these numbers, in ascending order.
nb::object sorted_tuple(std::vector<uint32_t> numbers) {
    std::sort(numbers.begin(), numbers.end());
    nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
    Py_ssize_t i = 0;
    for (const uint32_t number : numbers)
        PyTuple_SET_ITEM(tuple.ptr(), i++, checked(PyLong_FromUnsignedLong(number)).release().ptr());
    return tuple;
}

class OwnerSearch {
public:
    explicit OwnerSearch(const Structure &structure) {
        for (Cursor at(structure); at.is_at_node(); at.step()) add(at);
    }

    // Visits the nodes in the reverse of the order in which they end. There a node comes after its parent,
    // and an anchor after its aliases. So when it is a node's turn, it has got the owners from all edges.
    nb::object found() const {
        std::vector<uint32_t> owned, mixed;
        std::vector<Owners> owners(items_.size(), 0);
        owners[0] = kOther;
        for (auto next = closed_.rbegin(); next != closed_.rend(); ++next) {
            const Item &item = items_[*next];
            const Item &parent = items_[item.parent];
            if (*next > 0) owners[*next] |= parent.own ? parent.own : owners[item.parent];
            if (item.node.is_alias()) owners[anchors_[item.node.count]] |= owners[*next];
            if (!item.node.is_leaf() || !(owners[*next] & kModule)) continue;
            owned.push_back(item.leaf);
            if (owners[*next] & kOther) mixed.push_back(item.leaf);
        }
        return tuple_of(sorted_tuple(std::move(owned)), sorted_tuple(std::move(mixed)));
    }

private:
    void add(const Cursor &at) {
        interruptible_step();
        const Node node = at.node();
        const uint32_t parent = around_.empty() ? 0 : around_.innermost();
        Owners own = 0;
        if (is_registered(node.kind)) own = node_registration(at.refs()).is_module ? kModule : kOther;
        items_.push_back({node, parent, at.leaf(), own});
        if (node.is_anchor) anchors_.push_back(at.position());
        around_.add(at.position(), num_children(node), [&](uint32_t position) { closed_.push_back(position); });
    }

    std::vector<Item> items_;
    std::vector<uint32_t> anchors_;  // their positions, by number
    std::vector<uint32_t> closed_;   // positions in the order in which the nodes end
    Nesting<uint32_t> around_;       // by position
};

}  // namespace

nb::object module_leaves(const Structure &structure) {
    if (!has_module(structure)) return tuple_of(sorted_tuple({}), sorted_tuple({}));
    return OwnerSearch(structure).found();
}

}  // namespace pydag
