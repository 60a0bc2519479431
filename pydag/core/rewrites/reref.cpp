// SPDX-License-Identifier: Apache-2.0
#include "nodes/nodes.h"
#include "rewrites/redirect.h"
#include "rewrites/rewrites.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/fields.h"

#include <unordered_map>

namespace pydag {
namespace {

using detail::Mark;

// The nodes are rewritten depth first, from the root. If an Alias comes before its Anchor, the object is
// written at the Alias, and an alias where the Anchor stood.
class Rereferencing : public Redirection<Rereferencing> {
public:
    Rereferencing(const IndexedStructure &tree, const Leaves &leaves, const FlattenOptions &options)
        : Redirection(tree, leaves, options), targets_(tree.structure.num_nodes, kUnknown) {
        for (uint32_t i = 0; i < tree.structure.num_nodes; ++i)
            if (mark_at(i) == Mark::kAnchor) add_anchor(i);
    }

    Place target_of(Place slot) { return {resolve(slot.position), 0}; }
    [[noreturn]] void fail_cycle(uint32_t slot, uint32_t) const {
        fail(sharing_error, "an Alias stands within its own Anchor, at %s", path_to(slot).c_str());
    }

    // For a Node(type, aux_data, children): writes the node of that class.
    uint32_t write(Place place) {
        const uint32_t node = place.position;
        if (mark_at(node) != Mark::kNode) return write_unchanged(node);
        const uint32_t tuple = resolve(node + 1);
        PyObject *const *const meta = FieldsRefs{refs_at(node)}.meta_values();
        const nb::handle type(meta[0]), aux(meta[1]);
        if (!is_plain_sequence(tree_.node(tuple).kind))
            fail(PyExc_ValueError, "the children of a Node must be a tuple, at %s", path_to(node).c_str());
        if (!PyType_Check(type.ptr()))
            fail(PyExc_TypeError, "the type of a Node must be a class, got %U, at %s", short_repr(type).ptr(),
                 path_to(node).c_str());
        auto *const cls = reinterpret_cast<PyTypeObject *>(type.ptr());
        const TypeInfo info = options_.space->find(cls);
        const nb::object registration = nb::borrow(info.registration);
        const uint32_t count = tree_.node(tuple).count;
        result_.add(info.kind, count);
        const FromAux made = add_refs_from_aux(cls, info, aux, count, result_.refs);
        if (made == FromAux::kNoSuchNode)
            fail(PyExc_ValueError, "the class %R of the Node at %s is not registered here", type.ptr(),
                 path_to(node).c_str());
        if (made == FromAux::kOtherFields)
            fail(PyExc_ValueError, "the Node at %s doesn't fit the fields of %R", path_to(node).c_str(), type.ptr());
        return tuple;
    }

private:
    static constexpr uint32_t kUnknown = UINT32_MAX;

    PyObject *const *refs_at(uint32_t node) const { return tree_.refs(node); }
    Mark mark_at(uint32_t node) const { return detail::mark_of(tree_.node(node).kind, refs_at(node)); }
    uint64_t index_at(uint32_t node) const { return detail::index_of(tree_.structure, node, refs_at(node)); }

    void add_anchor(uint32_t node) {
        const auto [known, is_new] = anchors_.try_emplace(index_at(node), node);
        if (is_new || stands_for(known->second) == stands_for(node)) return;
        fail(sharing_error,
             "two anchors of index %llu are not one object\n  first:  %s\n  other:  %s\n"
             "  Trees that are put together must be derefed together.",
             static_cast<unsigned long long>(index_at(node)), path_to(known->second).c_str(), path_to(node).c_str());
    }

    // The node that is an Anchor's value, after the aliases of the tree's own sharing.
    uint32_t stands_for(uint32_t anchor) const { return tree_.resolve(anchor + 1); }

    // The node that a slot holds in the end, after aliases and anchors of both sorts. The result is remembered
    // for all nodes on the way, so that a long way is followed only once.
    uint32_t resolve(uint32_t start) {
        const uint32_t target = follow(start);
        for (const uint32_t node : way_) targets_[node] = target;
        return target;
    }

    uint32_t follow(uint32_t start) {
        way_.clear();
        uint32_t node = start;
        while (way_.size() <= tree_.structure.num_nodes) {
            if (targets_[node] != kUnknown) return targets_[node];
            way_.push_back(node);
            if (tree_.node(node).is_alias()) {
                node = tree_.resolve(node);
                continue;
            }
            const Mark mark = mark_at(node);
            if (mark == Mark::kAnchor) {
                node = anchors_.at(index_at(node)) + 1;
            } else if (mark == Mark::kAlias) {
                const auto anchor = anchors_.find(index_at(node));
                if (anchor == anchors_.end())
                    fail(sharing_error,
                         "there is no Anchor(%llu, ...) for the Alias at %s\n"
                         "  A derefed tree must be put together whole.",
                         static_cast<unsigned long long>(index_at(node)), path_to(node).c_str());
                node = anchor->second + 1;
            } else {
                return node;
            }
        }
        fail(sharing_error, "the Alias at %s leads back to itself", path_to(start).c_str());
    }

    std::vector<uint32_t> targets_;                   // the results of `resolve`, by position
    std::vector<uint32_t> way_;                       // of the last `resolve`
    std::unordered_map<uint64_t, uint32_t> anchors_;  // the Anchor of each index
};

}  // namespace

nb::object reref(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    const Structure structure = parts.structure();
    const IndexedStructure indexed(structure);
    Rereferencing walk(indexed, parts.leaves(), options);
    walk.run();
    return walk.build();
}

}  // namespace pydag
