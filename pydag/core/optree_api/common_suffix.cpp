// SPDX-License-Identifier: Apache-2.0
#include "optree_api/specs.h"

#include "base/error.h"
#include "base/pair_set.h"
#include "structure/compare.h"
#include "structure/descent.h"
#include "structure/node_difference.h"
#include "structure/prefix.h"
#include "structure/writer.h"

#include <algorithm>

namespace pydag {
namespace {

// Goes down both structures in step. Each slot of the first one has a partner: the object of the second one
// at the same path, or kLeaf. A shared object has a partner for each of its slots; they must be the same.
class Meeting {
public:
    Meeting(const Structure &first, const Structure &second)
        : first_(first), second_(second), partners_(first.num_nodes, kLeaf) {}

    void check() {
        walk(0, 0, [this](const Visit &visit) { return meet(visit); });
        std::sort(aliases_.begin(), aliases_.end(), [](const Visit &a, const Visit &b) { return a.slot < b.slot; });
        for (const Visit &alias : aliases_)
            walk(alias.slot, alias.partner, [this](const Visit &visit) { return meet_again(visit); });
    }

    void write(StructureBuilder &result, nb::object namespace_) {
        StructureWriter writer(result);
        SubtreeCopier copier(second_);
        rewrite(first_.structure, writer, [&](const Cursor &at) {
            if (!at.node().is_leaf()) writer.add(at.node(), at.refs());
            else if (partners_[at.position()] == kLeaf) writer.add_leaf();
            else copier.copy(partners_[at.position()], writer);
        });
        writer.finish(first_.structure.none_is_leaf, std::move(namespace_));
    }

private:
    static constexpr uint32_t kLeaf = UINT32_MAX;  // a partner that is a leaf, or would lie below one
    using Visit = Descent::Visit;                  // of a slot of the first structure with its partner

    // Visits slots with their partners, from a slot down; it goes below a slot if `visit` returns true.
    template <class Function>
    void walk(uint32_t start, uint32_t partner, Function visit) {
        walk_.run(start, partner, [&](Visit next) {
            if (next.partner != kLeaf) next.partner = second_.resolve(next.partner);
            if (next.partner != kLeaf && second_.node(next.partner).is_leaf()) next.partner = kLeaf;
            if (visit(next)) go_below(next);
        });
    }

    // Visits a slot for the first time. Aliases are collected and visited later.
    bool meet(const Visit &visit) {
        if (first_.node(visit.slot).is_alias()) {
            aliases_.push_back(visit);
            return false;
        }
        partners_[visit.slot] = visit.partner;
        return !first_.node(visit.slot).is_leaf();
    }

    // Visits a slot again, below an alias.
    bool meet_again(const Visit &visit) {
        const uint32_t position = first_.resolve(visit.slot), partner = partners_[position];
        if (visit.partner == partner || !met_.add(position, visit.partner)) return false;
        if (!first_.node(position).is_leaf()) return true;
        const bool may_be_same = visit.partner != kLeaf && partner != kLeaf;
        if (!may_be_same || !is_same_subtree(partner, visit.partner)) fail_conflict(visit);
        return false;
    }

    // Whether two subtrees of the second structure are equal, sharing included.
    bool is_same_subtree(uint32_t a, uint32_t b) {
        if (equal_.has(a, b)) return true;
        StructureBuilder one, other;
        SubtreeCopier copier(second_);
        copier.copy(a, one), copier.copy(b, other);
        return are_equal(one.view(), other.view()) && equal_.add(a, b);
    }

    // The last slot comes first, as in optree, so that of several errors the same one is reported.
    void go_below(const Visit &visit) {
        const uint32_t position = first_.resolve(visit.slot);
        if (visit.partner != kLeaf) check_fit(visit, position);
        slots_.clear(), others_.clear();
        first_.for_each_slot(position, [&](uint32_t slot) { slots_.push_back(slot); });
        if (visit.partner != kLeaf)
            second_.for_each_slot(visit.partner, [&](uint32_t slot) { others_.push_back(slot); });
        auto add = walk_.below(visit, static_cast<uint32_t>(slots_.size()));
        for (size_t i = slots_.size(); i-- > 0;)
            add(slots_[i], others_.empty() ? kLeaf : others_[order_.empty() ? i : order_[i]]);
    }

    void check_fit(const Visit &visit, uint32_t position) {
        const Node node = first_.node(position), other = second_.node(visit.partner);
        PyObject *const *const refs = first_.refs(position), *const *const others = second_.refs(visit.partner);
        try {
            const Fit fit = fit_node(node, refs, other, others, order_);
            if (fit != Fit::kFits) fail(PyExc_ValueError, "%s.", misfit(fit, node, refs, other, others).c_str());
        } catch (...) {
            walk_.rethrow_at(visit, "broadcasting");
        }
    }

    Steps steps(uint32_t slot) const { return steps_to(first_.structure, slot); }

    std::string outline_of(uint32_t partner) const {
        if (partner == kLeaf) return "leaf";
        return outline(second_.node(partner), second_.refs(partner));
    }

    [[noreturn]] void fail_conflict(const Visit &visit) const {
        const uint32_t position = first_.resolve(visit.slot);
        const std::string one = outline_of(partners_[position]), other = outline_of(visit.partner);
        fail(sharing_error,
             "the structures are shared differently\n  first structure:  %s and %s are one object\n"
             "  other structure:  they are two: %s and %s%s\n"
             "  What replaces a shared leaf must be the same at all of its paths.",
             path_text(steps(position)).c_str(), path_text(walk_.path_to(visit)).c_str(), one.c_str(), other.c_str(),
             one == other ? ", which differ below" : "");
    }

    const IndexedStructure first_, second_;
    Descent walk_{first_};
    std::vector<uint32_t> partners_;  // of each node of the first structure, at its first slot
    std::vector<Visit> aliases_;
    PairSet<uint32_t, uint32_t> met_;    // objects and partners that were visited below aliases
    PairSet<uint32_t, uint32_t> equal_;  // subtrees of the second structure
    std::vector<uint32_t> order_, slots_, others_;
};

}  // namespace

void common_suffix(const Structure &first, const Structure &second, StructureBuilder &result) {
    nb::object namespace_ = merge_namespaces(first, second);
    Meeting meeting(first, second);
    meeting.check();
    meeting.write(result, std::move(namespace_));
}

}  // namespace pydag
