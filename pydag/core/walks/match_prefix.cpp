// SPDX-License-Identifier: Apache-2.0
#include "walks/match_prefix.h"

#include "base/pair_set.h"
#include "nodes/match_node.h"
#include "structure/descent.h"

namespace pydag {
namespace {

class PrefixMatcher {
public:
    PrefixMatcher(const Structure &prefix, RefBuffer<48> &opened, std::vector<uint32_t> &met)
        : prefix_(prefix), opened_(opened), opened_at_(met), space_(Namespace::get(prefix.namespace_)) {}

    void run(nb::handle tree) {
        objects_.push_borrowed(tree.ptr());
        walk_.run(0, 0, [this](const Descent::Visit &visit) {
            const nb::object object = objects_.pop_owned();
            try {
                open(visit, object);
            } catch (...) {
                walk_.rethrow_at(visit, "matching");
            }
        });
    }

private:
    void open(const Descent::Visit &visit, nb::handle object) {
        const uint32_t position = prefix_.resolve(visit.slot);
        const Node node = prefix_.node(position);
        if (node.is_leaf()) return;
        if (node.is_anchor && !met_.add(position, object)) return;
        opened_.push_borrowed(object.ptr());  // so its address stays its own
        opened_at_.push_back(position);
        match_node(node, prefix_.refs(position), object, *space_, objects_);
        auto add = walk_.below(visit, node.count);
        prefix_.for_each_slot(position, [&](uint32_t slot) { add(slot, 0); });
    }

    const IndexedStructure prefix_;
    Descent walk_{prefix_};
    RefBuffer<48> &opened_;
    std::vector<uint32_t> &opened_at_;
    const NamespaceRef space_;
    Stack objects_;  // what stands in the slots to come
    PairSet<uint32_t, nb::handle> met_;
};

}  // namespace

void match_prefix(const Structure &prefix, nb::handle tree, RefBuffer<48> &opened, std::vector<uint32_t> &met) {
    PrefixMatcher(prefix, opened, met).run(tree);
}

}  // namespace pydag
