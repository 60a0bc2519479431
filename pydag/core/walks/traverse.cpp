// SPDX-License-Identifier: Apache-2.0
#include "walks/traverse.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "nodes/build.h"
#include "nodes/node_data.h"
#include "structure/cursor.h"
#include "structure/paths.h"

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
          memo_(structure.num_shared) {}

    nb::object run() {
        try {
            for (Cursor at(structure_); at.is_at_node(); at.step()) visit(at);
            current_ = 0;
            leaves_.finish();
        } catch (...) {
            rethrow_at(path_text(steps_to(structure_, {current_}).front()), "traversing");
        }
        return results_.pop_owned();
    }

private:
    // A node whose parts are being visited.
    struct Open {
        PyObject *const *refs;
        uint32_t position, number, pending;
    };

    void visit(const Cursor &at) {
        const Node node = at.node();
        current_ = at.position();
        interruptible_step();
        if (num_children(node) > 0) {
            open_.push({at.refs(), at.position(), at.number(), node.count});
            return;
        }
        if (node.is_alias()) results_.push_new(memo_[node.count]);
        else add(node, at.number(), node.is_leaf() ? take_leaf() : result_of(node, at.refs()));
        while (!open_.empty() && --open_.back().pending == 0) {
            const Open done = open_.pop();
            current_ = done.position;
            const Node parent = structure_.nodes[current_];
            add(parent, done.number, result_of(parent, done.refs));
        }
    }

    void add(Node node, uint32_t number, nb::object result) {
        if (node.is_anchor) memo_[number] = result;
        results_.push_new(std::move(result));
    }

    nb::object take_leaf() {
        nb::object leaf = leaves_.current();
        if (leaf_function_.is_valid()) leaf = call(leaf_function_, leaf);
        leaves_.advance();
        return leaf;
    }

    // Of a node whose parts are the last results.
    nb::object result_of(Node node, PyObject *const *refs) {
        const size_t base = results_.size() - node.count;
        if (!node_function_.is_valid()) return build_node(node.kind, refs, results_, base);
        if (how_ == NodeCall::kBuilt) return call(node_function_, build_node(node.kind, refs, results_, base));
        return call(node_function_, type_of(node.kind, refs), node_data(node.kind, refs), results_.take_tuple(base));
    }

    const Structure &structure_;
    LeafIterator leaves_;
    nb::handle node_function_, leaf_function_;
    NodeCall how_;
    Stack results_;
    Buffer<Open, 24> open_;
    std::vector<nb::object> memo_;  // the result of each shared object, by its number
    uint32_t current_ = 0;
};

}  // namespace

nb::object traverse(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
                    NodeCall how) {
    return Traversal(structure, leaves, node_function, leaf_function, how).run();
}

}  // namespace pydag
