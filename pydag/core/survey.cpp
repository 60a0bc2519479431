// SPDX-License-Identifier: Apache-2.0
#include "survey.h"

#include "children.h"
#include "identity_table.h"
#include "level.h"

#include <algorithm>

namespace pydag {
namespace {

class Survey {
public:
    Survey(const FlattenOptions &options, Draft &draft, Leaves &leaves)
        : options_(options), open_options_{options.space}, draft_(draft), leaves_(leaves) {}

    bool run(PyObject *tree) {
        const GcPause pause;  // a collection could run finalizers
        const auto tracks = static_cast<uint8_t>(options_.leaf_identity ? kObjectLeaf | kObjectNode : kObjectNode);
        level_ = {&tree, &tree + 1, false, 0};
        for (;;) {
            while (level_.next == level_.end) {
                if (levels_.empty()) return finish();
                level_ = levels_.pop();
            }
            PyObject *const object = *level_.next++;
            if (!object) return false;
            const TypeInfo *const info = options_.space->peek(Py_TYPE(object));
            if (!info) return false;
            const bool is_tracked = info->identity & tracks;
            if (is_tracked && !level_.is_only_way_to(object)) {
                const uint32_t known = seen_.find_or_add(object, num_nodes());
                if (known != IdentityTable::kNew) {
                    if (is_open(known)) return false;  // a cycle
                    draft_.nodes[known].is_anchor = has_aliases_ = true;
                    draft_.add(Kind::kAlias, known);
                    continue;
                }
            }
            if (info->kind == Kind::kLeaf || (info->kind == Kind::kNone && options_.none_is_leaf)) {
                draft_.add(Kind::kLeaf, 0);
                leaves_.push_borrowed(object);
            } else if (info->kind == Kind::kNone) {
                draft_.add(Kind::kNone, 0);
            } else if (!open(object, *info, is_tracked)) {
                return false;
            }
        }
    }

private:
    bool open(PyObject *object, const TypeInfo &info, bool is_tracked) {
        if (info.registration) {
            if (info.identity == kNoIdentity) return false;  // cycles through it are not found here
            uses_namespace_ = true;
        }
        uint32_t count = 0;
        PyObject *const *const children = read_node(object, info, open_options_, draft_.refs, count);
        if (!children) return false;
        const uint32_t node = draft_.add(info.kind, count);
        if (count == 0) return true;
        const bool owns_slots = (is_tracked || level_.owns_slots) && owns_its_slots(info.kind, object);
        levels_.push(level_);
        constexpr uint32_t kFarthest = 16;
        for (uint32_t i = 1; i < std::min(count, kFarthest); ++i) prefetch(children[i]);
        level_ = {children, children + count, owns_slots, node};
        return true;
    }

    // Whether the walk is inside of the node at this position. Open nodes ascend.
    bool is_open(uint32_t node) const {
        if (draft_.nodes[node].count == 0) return false;
        const Level *const first = levels_.data(), *const end = first + levels_.size();
        const auto is_before = [](const Level &level, uint32_t position) { return level.node < position; };
        const Level *const found = std::lower_bound(first, end, node, is_before);
        return level_.node == node || (found != end && found->node == node);
    }

    bool finish() {
        if (has_aliases_) number_anchors(draft_);
        const bool uses_namespace = uses_namespace_ || open_options_.insertion_ordered == 1;
        options_.describe(draft_, leaves_.size(), uses_namespace);
        return true;
    }

    uint32_t num_nodes() const { return static_cast<uint32_t>(draft_.nodes.size()); }

    const FlattenOptions &options_;
    OpenOptions open_options_;
    Draft &draft_;
    Leaves &leaves_;
    bool uses_namespace_ = false, has_aliases_ = false;
    Level level_;
    Buffer<Level, 24> levels_;
    IdentityTable seen_;
};

}  // namespace

bool survey(PyObject *tree, const FlattenOptions &options, Draft &draft, Leaves &leaves) {
    if (options.is_leaf.is_valid()) return false;
    if (Survey(options, draft, leaves).run(tree)) return true;
    draft.nodes.resize_down(0);
    draft.refs.drop_to(0);
    leaves.drop_to(0);
    return false;
}

}  // namespace pydag
