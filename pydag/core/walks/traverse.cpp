// SPDX-License-Identifier: Apache-2.0
#include "walks/traverse.h"

#include "base/error.h"
#include "nodes/build.h"
#include "nodes/node_data.h"
#include "structure/paths.h"
#include "walks/post_order.h"

namespace pydag {
namespace {

class LeafIterator {
public:
    explicit LeafIterator(nb::handle iterator) : iterator_(nb::borrow(iterator)) {}

    nb::object current() {
        if (!is_ahead_) advance();
        if (!next_.is_valid()) fail(PyExc_ValueError, "Too few leaves for PyDagSpec.");
        return next_;
    }
    void advance() {
        next_ = nb::steal(PyIter_Next(iterator_.ptr()));
        if (!next_.is_valid() && PyErr_Occurred()) nb::raise_python_error();
        is_ahead_ = true;
    }
    void finish() {
        if (!is_ahead_) advance();
        if (next_.is_valid()) fail(PyExc_ValueError, "Too many leaves for PyDagSpec.");
    }

private:
    nb::object iterator_, next_;
    bool is_ahead_ = false;
};

class Traversal {
public:
    Traversal(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
              NodeCall how)
        : structure_(structure),
          leaves_(leaves),
          node_function_(node_function),
          leaf_function_(leaf_function),
          how_(how),
          memo_(structure) {}

    nb::object run() {
        try {
            visit_children_first(structure_, *this);
            current_ = 0;
            leaves_.finish();
        } catch (...) {
            rethrow_at(structure_, current_, "traversing");
        }
        return results_.pop_owned();
    }

    void visit(const VisitedNode &at) {
        const Node node = structure_.nodes[at.position];
        current_ = at.position;
        nb::object result = node.is_leaf() ? take_leaf() : result_of(node, at.refs);
        if (node.is_anchor) memo_.set(at.number, result);
        results_.push_new(std::move(result));
    }
    void visit_alias(uint32_t number) { results_.push_borrowed(memo_[number]); }

private:
    nb::object take_leaf() {
        nb::object leaf = leaves_.current();
        if (leaf_function_.is_valid()) leaf = call(leaf_function_, leaf);
        leaves_.advance();
        return leaf;
    }

    // Of a node whose parts are the last results.
    nb::object result_of(Node node, PyObject *const *refs) {
        const size_t base = results_.size() - node.count;
        if (!node_function_.is_valid()) return build_node(node.kind, refs, results_, base, once_);
        if (how_ == NodeCall::kBuilt) return call(node_function_, build_node(node.kind, refs, results_, base, once_));
        return call(node_function_, type_of(node.kind, refs), node_data(node.kind, refs), results_.take_tuple(base));
    }

    const Structure &structure_;
    LeafIterator leaves_;
    nb::handle node_function_, leaf_function_;
    NodeCall how_;
    Stack results_;
    AnchorMemo memo_;
    uint32_t current_ = 0;
    MadeOnce once_;
};

}  // namespace

nb::object traverse(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
                    NodeCall how) {
    return Traversal(structure, leaves, node_function, leaf_function, how).run();
}

}  // namespace pydag
