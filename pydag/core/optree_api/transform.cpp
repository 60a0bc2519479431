// SPDX-License-Identifier: Apache-2.0
#include "optree_api/specs.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "structure/compare.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "structure/writer.h"

#include <algorithm>

namespace pydag {
namespace {

class Transformer {
public:
    Transformer(const Structure &structure, nb::handle node_function, nb::handle leaf_function)
        : structure_(structure),
          node_function_(node_function),
          leaf_function_(leaf_function),
          namespace_(nb::borrow(structure.namespace_)),
          replacements_(structure.num_nodes),
          repeated_(structure.num_shared) {}

    nb::object run() {
        try {
            replace_all();
        } catch (...) {
            rethrow_at(structure_, current_, "transforming");
        }
        if (!node_function_.is_valid()) check_registrations(structure_, namespace_, "transformed");
        for (const nb::object &spec : replacements_)
            if (spec.is_valid()) check_registrations(spec_of(spec).structure(), namespace_, "transformed");
        return write();
    }

private:
    // A node whose parts are being replaced.
    struct Open {
        uint32_t position, number;
        PyObject *const *refs;
        uint64_t repeated;  // how many nodes are written when its children are written again
    };
    static constexpr uint64_t kMost = UINT32_MAX;

    void replace_all() {
        Nesting<Open> around;
        for (Cursor at(structure_); at.is_at_node(); at.step()) {
            interruptible_step();
            around.add({at.position(), at.number(), at.refs(), 0}, num_children(at.node()), [&](const Open &done) {
                const uint64_t size = replace(done);
                if (around.empty()) return;
                uint64_t &repeated = around.innermost().repeated;
                repeated = std::min(repeated + size, kMost);
            });
        }
    }

    // Returns how many nodes are written when this one is met again.
    uint64_t replace(const Open &open) {
        const Node node = structure_.nodes[open.position];
        current_ = open.position;
        if (node.is_alias()) return count(repeated_[node.count]);
        if (node.is_leaf()) return remember(open, replace_leaf(open.position));
        const bool stays = replace_node(open);
        return remember(open, stays ? 1 : std::min(1 + open.repeated, kMost));
    }

    nb::object asked(nb::handle function, nb::object spec) {
        nb::object answer = call(function, spec);
        check_answer(answer, spec);
        return answer;
    }

    // The spec of a node alone. The last one is kept, since neighbouring nodes are often alike.
    nb::object spec_of_node(Node node, PyObject *const *refs) {
        const bool is_same = last_.is_valid() && last_node_.kind == node.kind && last_node_.count == node.count &&
                             std::equal(refs, refs + num_refs(node), last_refs_);
        if (!is_same) last_ = one_level_spec(node, refs, structure_.none_is_leaf, structure_.namespace_);
        last_node_ = node, last_refs_ = refs;
        return last_;
    }

    // Returns whether the replacement of the node has identity.
    bool replace_node(const Open &open) {
        const Node node = structure_.nodes[open.position];
        count(1);
        if (!node_function_.is_valid()) return has_identity(node.kind, open.refs);
        const nb::object spec = spec_of_node(node, open.refs);
        const nb::object answer = asked(node_function_, spec);
        const Structure &given = spec_of(answer).structure();
        // The answer may have one shared leaf in all of its slots. That doesn't count: the slots of the original
        // node say what is shared.
        const bool has_one_level = is_one_level(given);
        if ((has_one_level ? given.nodes[0].count : given.num_leaves) != node.count)
            fail(PyExc_ValueError,
                 "Expected the PyDagSpec transform function returns a PyDagSpec with the same number of arity as the "
                 "input (%u), got %U (input: %U).",
                 node.count, short_repr(answer).ptr(), short_repr(spec).ptr());
        if (!has_one_level)
            fail(PyExc_ValueError,
                 "Expected the PyDagSpec transform function returns a one-level PyDagSpec as the input, got %U (input: "
                 "%U).",
                 short_repr(answer).ptr(), short_repr(spec).ptr());
        replacements_[open.position] = answer;
        return has_identity(given.nodes[0].kind, given.refs);
    }

    uint64_t replace_leaf(uint32_t position) {
        if (!leaf_function_.is_valid()) return count(1);
        if (!leaf_.is_valid()) leaf_ = leaf_spec(structure_.none_is_leaf, structure_.namespace_);
        const nb::object answer = asked(leaf_function_, leaf_);
        replacements_[position] = answer;
        const Structure &given = spec_of(answer).structure();
        return has_identity(given.nodes[0].kind, given.refs) ? (count(given.num_nodes), 1) : count(given.num_nodes);
    }

    void check_answer(nb::handle answer, nb::handle spec) {
        if (!nb::isinstance<Spec>(answer))
            fail(PyExc_TypeError, "Expected the PyDagSpec transform function returns a PyDagSpec, got %U (input: %U).",
                 short_repr(answer).ptr(), short_repr(spec).ptr());
        const Structure &given = spec_of(answer).structure();
        if (given.none_is_leaf != structure_.none_is_leaf)
            fail(PyExc_ValueError,
                 "Expected the PyDagSpec transform function returns a PyDagSpec with the same value of "
                 "`none_is_leaf=%s` as the input, got %U (input: %U).",
                 structure_.none_is_leaf ? "True" : "False", short_repr(answer).ptr(), short_repr(spec).ptr());
        if (!are_compatible(namespace_, given.namespace_))
            fail(PyExc_ValueError,
                 "Expected the PyDagSpec transform function returns a PyDagSpec with namespace %R, got %R.",
                 namespace_.ptr(), given.namespace_);
        if (PyUnicode_GET_LENGTH(namespace_.ptr()) == 0) namespace_ = nb::borrow(given.namespace_);
    }

    // A value is written once for each slot that holds it. If lists become tuples, that may be exponentially
    // many nodes, so they are counted before they are written.
    uint64_t count(uint64_t num_nodes) {
        total_ = std::min(total_ + num_nodes, kMost);
        if (total_ == kMost) StructureBuilder::fail_too_many_nodes();
        return num_nodes;
    }
    uint64_t remember(const Open &open, uint64_t size) {
        if (structure_.nodes[open.position].is_anchor) repeated_[open.number] = size;
        return size;
    }

    nb::object write() {
        StructureBuilder result;
        StructureWriter writer(result);
        rewrite(structure_, writer, [&](const Cursor &at) {
            const nb::handle replacement = replacements_[at.position()];
            if (!replacement.is_valid()) return writer.add(at.node(), at.refs());
            const Structure &given = spec_of(replacement).structure();
            if (!at.node().is_leaf()) return writer.add(given.nodes[0], given.refs);
            const IndexedStructure source(given);
            SubtreeCopier(source).copy(0, writer);
        });
        writer.finish(structure_.none_is_leaf, std::move(namespace_));
        return make_spec(Spec(std::move(result)));
    }

    const Structure &structure_;
    nb::handle node_function_, leaf_function_;
    nb::object namespace_, leaf_, last_;
    Node last_node_ = {};  // what `last_` was made for
    PyObject *const *last_refs_ = nullptr;
    std::vector<nb::object> replacements_;  // a spec for each node and leaf that is replaced
    std::vector<uint64_t> repeated_;        // of each anchor, by its number: see Open
    uint64_t total_ = 0;
    uint32_t current_ = 0;
};

}  // namespace

nb::object transform(const Spec &spec, nb::handle node_function, nb::handle leaf_function) {
    return Transformer(spec.structure(), node_function, leaf_function).run();
}

}  // namespace pydag
