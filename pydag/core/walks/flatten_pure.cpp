// SPDX-License-Identifier: Apache-2.0
#include "walks/flatten.h"

#include "base/gc_pause.h"
#include "base/identity_table.h"
#include "base/interrupt.h"
#include "nodes/open_options.h"
#include "walks/node_answers.h"

#include <algorithm>

namespace pydag {
namespace {

template <bool keeps_objects>
class PureFlatten {
public:
    PureFlatten(const FlattenOptions &options, StructureBuilder &builder, Leaves &leaves, NodeObjects *objects)
        : options_(options), open_options_{nullptr}, builder_(builder), leaves_(leaves), objects_(objects) {
        options.prepare(open_options_);
    }

    bool run(PyObject *tree) {
        const GcPause pause;  // a collection could run finalizers
        const uint8_t tracks = options_.tracked(false), tracks_values = options_.tracked(true);
        BorrowedFrame level = {&tree, &tree + 1, 0};
        LookingSteps steps;
        for (;;) {
            while (level.next == level.end) {
                if (levels_.empty()) return finish();
                level = levels_.pop();
            }
            PyObject *const object = *level.next++;
            if (!object || steps.must_give_up()) return false;
            const TypeInfo *const info = options_.space->find_known(Py_TYPE(object));
            if (!info) return false;
            if constexpr (keeps_objects) objects_->push_borrowed(object);
            const bool is_tracked = info->identity & (level.leaves_are_values() ? tracks_values : tracks);
            if (is_tracked && !level.is_only_way_to(object)) {
                const uint32_t known = seen_.find_or_add(object, num_nodes());
                if (known != IdentityTable::kNew) {
                    if (is_open(known, level)) return false;  // a cycle
                    builder_.nodes[known].is_anchor = has_aliases_ = true;
                    builder_.add(Kind::kAlias, known);
                    continue;
                }
            }
            if (is_leaf(info->kind) || (is_none(info->kind) && options_.none_is_leaf)) {
                builder_.add(Kind::kLeaf, 0);
                leaves_.push_borrowed(object);
            } else if (is_none(info->kind)) {
                builder_.add(Kind::kNone, 0);
            } else if (!open(object, *info, is_tracked, level)) {
                return false;
            }
        }
    }

private:
    // Goes into the object, where it has children.
    [[gnu::always_inline]] bool open(PyObject *object, const TypeInfo &info, bool is_tracked, BorrowedFrame &level) {
        if (info.registration) {
            if (info.identity == kNoIdentity) return false;  // cycles through it are not found here
            has_registered_ = true;
        }
        const size_t num_refs_before = builder_.refs.size();
        uint32_t count = 0;
        PyObject *const *const children = read_node(object, info, open_options_, builder_.refs, count);
        if (!children) return false;
        const uint32_t node = builder_.add(info.kind, count);
        if (count == 0) return true;
        const bool owns_slots = (is_tracked || level.owns_slots()) && owns_its_slots(info.kind, object, open_options_);
        const bool leaves_are_values =
            are_leaves_values(info.kind, builder_.refs.data() + num_refs_before, level.leaves_are_values());
        levels_.push(level);
        constexpr uint32_t kFarthest = 16;
        for (uint32_t i = 1; i < std::min(count, kFarthest); ++i) prefetch(children[i]);
        level = {children, children + count, BorrowedFrame::state_of(owns_slots, leaves_are_values, node)};
        return true;
    }

    // Whether the walk is inside of the node at this position. Open nodes ascend.
    bool is_open(uint32_t node, const BorrowedFrame &innermost) const {
        if (builder_.nodes[node].count == 0) return false;
        const BorrowedFrame *const first = levels_.data(), *const end = first + levels_.size();
        const auto is_before = [](const BorrowedFrame &level, uint32_t position) { return level.node() < position; };
        const BorrowedFrame *const found = std::lower_bound(first, end, node, is_before);
        return innermost.node() == node || (found != end && found->node() == node);
    }

    bool finish() {
        if (has_aliases_) number_anchors(builder_);
        options_.describe(builder_, leaves_.size(), has_registered_);
        return true;
    }

    uint32_t num_nodes() const { return static_cast<uint32_t>(builder_.nodes.size()); }

    const FlattenOptions &options_;
    OpenOptions open_options_;
    StructureBuilder &builder_;
    Leaves &leaves_;
    NodeObjects *const objects_;
    bool has_registered_ = false, has_aliases_ = false;
    Buffer<BorrowedFrame, 24> levels_;
    IdentityTable seen_;
};

}  // namespace

bool flatten_pure(PyObject *tree, const FlattenOptions &options, StructureBuilder &builder, Leaves &leaves,
                  NodeObjects *objects) {
    if (options.asks()) return false;
    const bool is_done = objects ? PureFlatten<true>(options, builder, leaves, objects).run(tree)
                                 : PureFlatten<false>(options, builder, leaves, nullptr).run(tree);
    if (is_done) return true;
    builder.nodes.resize_down(0);
    builder.refs.drop_to(0);
    leaves.drop_to(0);
    if (objects) objects->drop_to(0);
    return false;
}

}  // namespace pydag
