// SPDX-License-Identifier: Apache-2.0
#include "walks/opened_by_prefix.h"

#include "structure/node_refs.h"
#include "types/key_match.h"
#include "walks/match_prefix.h"

namespace pydag {

OpenedByPrefix::OpenedByPrefix(const Structure &prefix, nb::handle tree) : prefix_(prefix) {
    std::vector<uint32_t> positions;
    match_prefix(prefix, tree, kept_, positions);
    for (size_t i = 0; i < positions.size(); ++i) of_object_[kept_[i]].push_back(positions[i]);
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
