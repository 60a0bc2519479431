// SPDX-License-Identifier: Apache-2.0
#include "walks/opened_by_prefix.h"

#include "base/pair_set.h"
#include "nodes/nodes.h"
#include "structure/descent.h"
#include "types/keys.h"

namespace pydag {

OpenedByPrefix::OpenedByPrefix(const Structure &prefix, nb::handle tree) : prefix_(prefix) {
    const NamespaceRef space = Namespace::get(prefix.namespace_);
    PairSet<uint32_t, nb::handle> met;
    Descent walk(prefix_);
    Stack objects;  // those in the slots to come
    objects.push_borrowed(tree.ptr());
    walk.run(0, 0, [&](const Descent::Visit &visit) {
        const nb::object object = objects.pop_owned();
        const uint32_t position = prefix_.resolve(visit.slot);
        const Node node = prefix_.node(position);
        if (node.is_leaf() || (node.is_anchor && !met.add(position, object))) return;
        kept_.push_borrowed(object.ptr());
        of_object_[object.ptr()].push_back(position);
        try {
            match_node(node, prefix_.refs(position), object, *space, objects);
        } catch (...) {
            walk.rethrow_at(visit, "matching");
        }
        auto add = walk.below(visit, node.count);
        prefix_.for_each_slot(position, [&](uint32_t slot) { add(slot, 0); });
    });
}

bool OpenedByPrefix::find_partners(PyObject *object, bool has_identity, uint32_t parent, uint32_t child) {
    current_.clear();
    if (const auto known = of_object_.find(object); has_identity && known != of_object_.end()) {
        current_ = known->second;
    } else if (parent == kNoParent) {
        if (!prefix_.node(0).is_leaf()) current_.push_back(0);
    } else if (const auto children = of_children_.find(parent); children != of_children_.end()) {
        current_ = children->second[child];
    }
    return !current_.empty();
}

void OpenedByPrefix::add(uint32_t position, Node node, PyObject *const *refs) {
    if (current_.empty()) return;
    std::vector<Partners> children(node.count);
    for (const uint32_t partner : current_) {
        const Node expected = prefix_.node(partner);
        std::vector<uint32_t> order;
        // A flatten function may have given other parts when the tree was held against the prefix.
        if (expected.count != node.count || has_keys(expected.kind) != has_keys(node.kind)) continue;
        if (has_keys(node.kind) &&
            !match_keys(keys_box_of(expected.kind, prefix_.refs(partner)), keys_box_of(node.kind, refs), order))
            continue;
        uint32_t i = 0;
        prefix_.for_each_slot(partner, [&](uint32_t slot) {
            const uint32_t child = order.empty() ? i : order[i], below = prefix_.resolve(slot);
            if (!prefix_.node(below).is_leaf()) children[child].push_back(below);
            ++i;
        });
    }
    of_children_.insert_or_assign(position, std::move(children));
}

}  // namespace pydag
