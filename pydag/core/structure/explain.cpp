// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"
#include "structure/compare.h"
#include "structure/cursor.h"
#include "structure/node_difference.h"
#include "structure/paths.h"

#include <vector>

namespace pydag {
namespace {

constexpr size_t kShown = 8;
constexpr uint32_t kNowhere = UINT32_MAX;

// One of the two structures, read node by node.
struct Side {
    Side(const Structure &structure, const Roots &roots)
        : structure(structure), roots(roots), cursor(structure), partners(structure.num_nodes, kNowhere) {}

    Node node() const { return cursor.node(); }
    PyObject *const *refs() const { return cursor.refs(); }
    uint32_t at() const { return cursor.position(); }
    void step() {
        interruptible_step();
        if (node().is_anchor) anchors.push_back(at());
        cursor.step();
    }
    void skip_subtree() {
        for (uint64_t pending = 1; pending > 0; --pending) {
            pending += num_children(node());
            step();
        }
    }
    // The position of the anchor of an alias.
    uint32_t target() const { return anchors[node().count]; }
    std::string path(uint32_t position) const { return roots.path(steps_to(structure, position)); }

    const Structure &structure;
    const Roots &roots;
    Cursor cursor;
    std::vector<uint32_t> anchors;   // the positions of those that were passed, by number
    std::vector<uint32_t> partners;  // for each node the node of the other side that it was compared with
};

// Both sides always stand at nodes with the same path: subtrees that differ are skipped on both.
class Explainer {
public:
    Explainer(const Structure &a, const Structure &b, bool exactly, const Roots &roots)
        : a_(a, roots), b_(b, roots), exactly_(exactly) {}

    std::string run() {
        compare_options();
        while (a_.cursor.is_at_node()) {
            a_.partners[a_.at()] = b_.at();
            b_.partners[b_.at()] = a_.at();
            const bool part = is_alias(a_) || is_alias(b_) ? sharing_parts() : nodes_part();
            part ? a_.skip_subtree() : a_.step();
            part ? b_.skip_subtree() : b_.step();
        }
        if (count_ > kShown) text_ += "\nand " + std::to_string(count_ - kShown) + " more";
        return text_;
    }

private:
    struct Report {
        std::string place;
        Words words;
    };
    static bool is_alias(const Side &side) { return side.node().is_alias(); }

    // Makes words and paths, which cost time, only for differences that are shown.
    template <class Tell>
    void report(Tell tell) {
        if (++count_ > kShown) return;
        auto [place, words] = tell();
        if (words.first == words.second) words.second += " (not equal to the first, though written alike)";
        text_ += (count_ > 1 ? "\n" + place : place) + "\n  first:  " + words.first + "\n  second: " + words.second;
    }

    // The path on both sides; once, unless equal keys are written differently.
    std::string path(uint32_t in_a, uint32_t in_b) const {
        const std::string a = a_.path(in_a), b = b_.path(in_b);
        return a == b ? a : a + " (in the second " + b + ")";
    }
    std::string here() const { return path(a_.at(), b_.at()); }

    void compare_options() {
        if (a_.structure.none_is_leaf != b_.structure.none_is_leaf) {
            const std::string leaf = "a leaf (none_is_leaf=True)", node = "a node without children";
            report([&] { return Report{"None", a_.structure.none_is_leaf ? Words{leaf, node} : Words{node, leaf}}; });
        }
        PyObject *const a = a_.structure.namespace_, *const b = b_.structure.namespace_;
        if (!are_compatible(a, b))
            report([&] { return Report{"the namespace", {text_of(short_repr(a)), text_of(short_repr(b))}}; });
    }

    bool nodes_part() {
        if (are_alike(a_.node(), a_.refs(), b_.node(), b_.refs())) {
            if (exactly_ && !are_interchangeable(a_.node(), a_.refs(), b_.refs()))
                report([&] { return Report{here(), told_apart_by(a_.node(), a_.refs(), b_.refs())}; });
            return false;
        }
        report([&] { return Report{here(), difference(a_.node(), a_.refs(), b_.node(), b_.refs())}; });
        return true;
    }

    bool sharing_parts() {
        if (is_alias(a_) && is_alias(b_)) return targets_part();
        const bool in_first = is_alias(a_);
        const Side &alias = in_first ? a_ : b_, &other = in_first ? b_ : a_;
        const uint32_t target = alias.target(), partner = alias.partners[target];
        const auto ordered = [&](std::string of_alias, std::string of_other) {
            return in_first ? Words{of_alias, of_other} : Words{of_other, of_alias};
        };
        report([&] {
            if (partner == kNowhere || !traits(other.node().kind).has_identity)
                return Report{here(), ordered(same_as(alias, target), outline(other.node(), other.refs()))};
            const std::string there = in_first ? path(target, partner) : path(partner, target);
            return Report{there + " and " + here(), ordered("one object", "two objects")};
        });
        return true;
    }

    // Compares two aliases. If both lead into subtrees that were skipped, the difference was reported there.
    bool targets_part() {
        const uint32_t a = a_.target(), b = b_.target();
        if (a_.partners[a] == b) return false;
        if (a_.partners[a] == kNowhere && b_.partners[b] == kNowhere) return false;
        report([&] { return Report{here(), {same_as(a_, a), same_as(b_, b)}}; });
        return true;
    }

    static std::string same_as(const Side &side, uint32_t target) { return "the same object as " + side.path(target); }

    Side a_, b_;
    const bool exactly_;
    size_t count_ = 0;
    std::string text_;
};

}  // namespace

std::string explain(const Structure &a, const Structure &b, bool exactly, const Roots &roots) {
    return Explainer(a, b, exactly, roots).run();
}

}  // namespace pydag
