// SPDX-License-Identifier: Apache-2.0
#include "walks/match_prefix.h"

#include "base/interrupt.h"
#include "nodes/match_node.h"
#include "structure/way.h"

#include <algorithm>
#include <set>

namespace pydag {
namespace {

class PrefixMatcher {
public:
    PrefixMatcher(const Structure &prefix, RefBuffer<48> &opened, std::vector<uint32_t> &met)
        : prefix_(prefix), opened_(opened), opened_at_(met), space_(Namespace::get(prefix.namespace_)) {}

    void run(nb::handle tree) {
        objects_.push_borrowed(tree.ptr());
        pending_.push({0, 0});
        while (!pending_.empty()) {
            interruptible_step();
            const Visit visit = pending_.pop();
            const nb::object object = objects_.pop_owned();
            try {
                open(visit, object);
            } catch (...) {
                rethrow_at([&] { return place(visit); }, "matching");
            }
        }
    }

private:
    struct Visit {
        uint32_t slot, parent;  // parent: where in `trail_` the node stands whose slot it is
    };

    void open(const Visit &visit, nb::handle object) {
        const uint32_t position = prefix_.resolve(visit.slot);
        const Node node = prefix_.node(position);
        if (node.is_leaf()) return;
        if (node.is_anchor && !met_.emplace(position, object.ptr()).second) return;
        opened_.push_borrowed(object.ptr());  // so its address stays its own
        opened_at_.push_back(position);
        match_node(node, prefix_.refs(position), object, *space_, objects_);
        const auto parent = static_cast<uint32_t>(trail_.size());
        trail_.push_back(visit);
        Visit *const slots = pending_.extend(node.count);
        uint32_t i = node.count;
        prefix_.for_each_slot(position, [&](uint32_t slot) { slots[--i] = {slot, parent}; });
    }

    std::string place(const Visit &visit) const {
        std::vector<uint32_t> slots = {visit.slot};
        for (uint32_t at = visit.parent; slots.back() != 0; at = trail_[at].parent) slots.push_back(trail_[at].slot);
        std::reverse(slots.begin(), slots.end());
        return path_text(steps_along(prefix_, slots));
    }

    const PlacedStructure prefix_;
    RefBuffer<48> &opened_;
    std::vector<uint32_t> &opened_at_;
    const NamespaceRef space_;
    Stack objects_;              // what stands in the slots to come
    Buffer<Visit, 48> pending_;  // the slots
    std::vector<Visit> trail_;
    std::set<std::pair<uint32_t, PyObject *>> met_;
};

}  // namespace

void match_prefix(const Structure &prefix, nb::handle tree, RefBuffer<48> &opened, std::vector<uint32_t> &met) {
    PrefixMatcher(prefix, opened, met).run(tree);
}

}  // namespace pydag
