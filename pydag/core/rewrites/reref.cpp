// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"
#include "base/tuples.h"
#include "rewrites/deref.h"

#include "nodes/node_aux.h"
#include "structure/cursor.h"
#include "structure/indexed_structure.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/fields.h"
#include "walks/unflatten.h"

#include <unordered_map>

namespace pydag {
namespace {

using detail::Mark;

// The nodes are rewritten depth first, from the root. If an Alias comes before its Anchor, the object is
// written at the Alias, and an alias where the Anchor stood.
class Rewriter {
public:
    Rewriter(const Structure &structure, const Leaves &leaves, Namespace &space, StructureBuilder &result,
             Leaves &result_leaves)
        : tree_(structure),
          leaves_(leaves),
          space_(space),
          result_(result),
          result_leaves_(result_leaves),
          states_(structure.num_nodes) {}

    void run() {
        for (uint32_t i = 0; i < tree_.structure.num_nodes; ++i)
            if (mark_at(i) == Mark::kAnchor) add_anchor(i);
        Buffer<uint32_t, 48> pending;  // the slots to come
        Nesting<uint32_t> around;
        const auto close = [this](uint32_t done) { states_[done].is_open = false; };
        bool has_aliases = false;
        pending.push(0);
        while (!pending.empty()) {
            interruptible_step();
            const uint32_t slot = pending.pop(), node = resolve(slot);
            NodeState &state = states_[node];
            if (state.is_open) fail(sharing_error, "an Alias stands within its own Anchor, at %s", path(slot).c_str());
            if (state.result != kUnknown) {
                result_.nodes[state.result].is_anchor = true;
                result_.add(Kind::kAlias, state.result);
                has_aliases = true;
                around.add_closed(close);
                continue;
            }
            state.result = static_cast<uint32_t>(result_.nodes.size());
            state.is_open = true;
            const uint32_t parent = emit(node);
            tree_.push_slots(parent, pending, [](uint32_t child) { return child; });
            around.add(node, num_children(node_at(parent)), close);
        }
        if (has_aliases) number_anchors(result_);
        result_.num_leaves = static_cast<uint32_t>(result_leaves_.size());
        result_.none_is_leaf = tree_.structure.none_is_leaf;
        result_.namespace_ = nb::borrow(space_.name());
    }

private:
    static constexpr uint32_t kUnknown = UINT32_MAX;
    struct NodeState {
        uint32_t result = kUnknown;  // its position in the result
        uint32_t target = kUnknown;  // what `resolve` found
        bool is_open = false;        // it is being written
    };

    Node node_at(uint32_t node) const { return tree_.node(node); }
    PyObject *const *refs_at(uint32_t node) const { return tree_.refs(node); }
    Mark mark_at(uint32_t node) const { return detail::mark_of(node_at(node).kind, refs_at(node)); }
    std::string path(uint32_t node) const { return path_of(tree_.structure, node); }

    uint64_t index_at(uint32_t node) const { return detail::index_of(tree_.structure, node, refs_at(node)); }

    void add_anchor(uint32_t node) {
        const auto [known, is_new] = anchors_.try_emplace(index_at(node), node);
        if (is_new || stands_for(known->second) == stands_for(node)) return;
        fail(sharing_error,
             "two anchors of index %llu are not one object\n  first:  %s\n  other:  %s\n"
             "  Trees that are put together must be derefed together.",
             static_cast<unsigned long long>(index_at(node)), path(known->second).c_str(), path(node).c_str());
    }

    // The node that is an Anchor's value, after the aliases of the tree's own sharing.
    uint32_t stands_for(uint32_t anchor) const { return tree_.resolve(anchor + 1); }

    // The node that a slot holds in the end, after aliases and anchors of both sorts. The result is remembered
    // for all nodes on the way, so that a long way is followed only once.
    uint32_t resolve(uint32_t start) {
        const uint32_t target = follow(start);
        for (const uint32_t node : way_) states_[node].target = target;
        return target;
    }

    uint32_t follow(uint32_t start) {
        way_.clear();
        uint32_t node = start;
        while (way_.size() <= tree_.structure.num_nodes) {
            if (states_[node].target != kUnknown) return states_[node].target;
            way_.push_back(node);
            if (node_at(node).is_alias()) {
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
                         static_cast<unsigned long long>(index_at(node)), path(node).c_str());
                node = anchor->second + 1;
            } else {
                return node;
            }
        }
        fail(sharing_error, "the Alias at %s leads back to itself", path(start).c_str());
    }

    // Writes a node to the result. Returns the node whose children are those of the written one.
    uint32_t emit(uint32_t node) {
        const Node source = node_at(node);
        if (source.is_leaf()) result_leaves_.push_borrowed(leaves_[tree_.leaf(node)]);
        if (mark_at(node) == Mark::kNode) return emit_marked(node);
        result_.add(source.kind, source.count);
        result_.add_refs(refs_at(node), num_refs(source));
        return node;
    }

    // For a Node(type, aux_data, children): writes the node of that class.
    uint32_t emit_marked(uint32_t node) {
        const uint32_t tuple = resolve(node + 1);
        PyObject *const *const meta = FieldsRefs{refs_at(node)}.meta_values();
        const nb::handle type(meta[0]), aux(meta[1]);
        if (!is_plain_sequence(node_at(tuple).kind))
            fail(PyExc_ValueError, "the children of a Node must be a tuple, at %s", path(node).c_str());
        if (!PyType_Check(type.ptr()))
            fail(PyExc_TypeError, "the type of a Node must be a class, got %U, at %s", short_repr(type).ptr(),
                 path(node).c_str());
        auto *const cls = reinterpret_cast<PyTypeObject *>(type.ptr());
        const TypeInfo info = space_.find(cls);
        const nb::object registration = nb::borrow(info.registration);
        const uint32_t count = node_at(tuple).count;
        result_.add(info.kind, count);
        const FromAux made = add_refs_from_aux(cls, info, aux, count, result_.refs);
        if (made == FromAux::kNoSuchNode)
            fail(PyExc_ValueError, "the class %R of the Node at %s is not registered here", type.ptr(),
                 path(node).c_str());
        if (made == FromAux::kOtherFields)
            fail(PyExc_ValueError, "the Node at %s doesn't fit the fields of %R", path(node).c_str(), type.ptr());
        return tuple;
    }

    const IndexedStructure tree_;
    const Leaves &leaves_;
    Namespace &space_;
    StructureBuilder &result_;
    Leaves &result_leaves_;
    std::vector<NodeState> states_;
    std::vector<uint32_t> way_;                       // of the last `resolve`
    std::unordered_map<uint64_t, uint32_t> anchors_;  // the Anchor of each index
};

}  // namespace

nb::object reref(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    const Structure structure = parts.structure();
    StructureBuilder result;
    Leaves leaves;
    Rewriter(structure, parts.leaves(), *options.space, result, leaves).run();
    return unflatten(result.view(), leaves.data());
}

}  // namespace pydag
