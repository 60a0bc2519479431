// SPDX-License-Identifier: Apache-2.0
#include "rewrites/rewrites.h"

#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/paths.h"
#include "walks/walks.h"

namespace pydag {
namespace {

// The objects of which a replacement consists. In the new tree they stand, as they are, wherever the tree holds them:
// otherwise what the replacement shares with the rest of the tree would be two objects.
class Replacement {
public:
    Replacement(nb::handle object, nb::handle old_object, FlattenOptions options) {
        kept_.find_or_add(old_object.ptr(), FlattenOptions::kKept);
        if (is_leaf(options.space->find_class_of(object.ptr()).kind)) return;
        options.roots = Roots(nb::str("new"));
        const Flattened parts(object, options, &objects_);
        const Structure structure = parts.structure();
        const std::vector<bool> around_old = find_around(old_object, structure);
        for (uint32_t i = 0; i < structure.num_nodes; ++i) {
            PyObject *const part = objects_[i];
            if ((options.space->find_class_of(part).identity & kObjectNode) == 0) continue;
            kept_.find_or_add(part, around_old[i] ? kAroundOld : FlattenOptions::kKept);
        }
    }

    const IdentityTable &kept() const { return kept_; }
    // Raises if the tree holds something that the replacement holds, too, and that holds the old object.
    void refuse_cycle(const Structure &tree, const NodeObjects &objects) const {
        for (uint32_t i = 0; i < tree.num_nodes; ++i) {
            if (kept_.find(objects[i]) != kAroundOld || tree.nodes[i].is_leaf()) continue;
            const std::string path = path_of(tree, i);
            fail(cycle_error,
                 "an object would contain itself: new holds %s, and would stand in it\n"
                 "  Whatever new holds of the tree is replaced there, too. To leave it as it is in new, write\n"
                 "  pydag.dag_rewrite(lambda part: new if part is old else part, tree).",
                 path.c_str());
        }
    }

private:
    static constexpr uint32_t kAroundOld = FlattenOptions::kKept + 1;

    // Which nodes have the old object below them.
    std::vector<bool> find_around(nb::handle old_object, const Structure &structure) const {
        std::vector<bool> holds(structure.num_nodes), around_old(structure.num_nodes);
        std::vector<uint32_t> anchors;
        Nesting<uint32_t> around;
        for (Cursor at(structure); at.is_at_node(); at.step()) {
            interruptible_step();
            const uint32_t position = at.position();
            const Node node = at.node();
            if (node.is_anchor) anchors.push_back(position);
            holds[position] = node.is_alias() ? holds[anchors[node.count]] : old_object.is(objects_[position]);
            around.add(position, num_children(node), [&](uint32_t done) {
                if (!holds[done] || around.empty()) return;
                holds[around.innermost()] = around_old[around.innermost()] = true;
            });
        }
        return around_old;
    }

    NodeObjects objects_;  // owns what `kept_` knows
    IdentityTable kept_;
};

}  // namespace

nb::object replace(nb::handle tree, nb::handle old_object, nb::handle new_object, FlattenOptions options) {
    if (options.space->find_class_of(old_object.ptr()).identity == kNoIdentity)
        fail(PyExc_ValueError,
             "%U is a value and has no identity, so no place is its own\n"
             "  Pass the object that is to be replaced, such as tree['layer'], not its path.",
             short_repr(old_object).ptr());
    const Replacement replacement(new_object, old_object, options);
    options.kept = &replacement.kept();
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    Leaves &leaves = parts.leaves();
    bool is_found = false;
    for (size_t i = 0; i < leaves.size(); ++i) {
        if (leaves[i] != old_object.ptr()) continue;
        is_found = true;
        leaves.replace(i, nb::borrow(new_object));
    }
    if (!is_found)
        fail(PyExc_ValueError,
             "the tree doesn't hold the object that is to be replaced: %U\n"
             "  Pass the very object, such as tree['layer']: an equal one is another object.",
             short_repr(old_object).ptr());
    replacement.refuse_cycle(parts.structure(), objects);
    return unflatten(parts.structure(), leaves.data());
}

}  // namespace pydag
