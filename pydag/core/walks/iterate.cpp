// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/box.h"
#include "base/stack_room.h"
#include "base/turn.h"
#include "walks/flatten_general.h"

#include <memory>

namespace pydag {
namespace {

struct Progress {
    explicit Progress(const FlattenOptions &given) : options(given), walk(options, builder, leaves, nullptr) {}

    FlattenOptions options;
    StructureBuilder builder;
    Leaves leaves;
    GeneralWalk walk;

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(options.is_leaf.ptr());
        if (const int status = builder.refs.traverse(visit, arg)) return status;
        if (const int status = leaves.traverse(visit, arg)) return status;
        return walk.traverse(visit, arg);
    }
};

struct LeafIterator {
    std::unique_ptr<Progress> progress;  // null: there are no more leaves
    Turn turn = {};                      // of the threads that share the iterator

    int traverse(visitproc visit, void *arg) const { return progress ? progress->traverse(visit, arg) : 0; }
};
using LeafIteratorBox = Box<LeafIterator>;

nb::object next_of(LeafIterator &iterator) {
    require_stack_room();
    if (iterator.turn.is_own()) {
        if (!iterator.progress) return nb::object();
        fail(PyExc_RuntimeError, "PyTreeIter is already iterating.");
    }
    struct Running {
        LeafIterator &iterator;
        explicit Running(LeafIterator &iterator) : iterator(iterator) {
            iterator.turn.begin(
                "PyTreeIter is already iterating: the thread that asks for its next leaf waits for an iterator that "
                "this thread asks for its next leaf.");
        }
        ~Running() {
            if (iterator.progress) iterator.progress->options.let_go_of_space();
            iterator.turn.end();
        }
    } const running(iterator);
    if (!iterator.progress) return nb::object();
    iterator.progress->options.take_space();
    iterator.progress->walk.take_space();
    if (iterator.progress->walk.advance()) return nb::borrow(iterator.progress->leaves.back());
    // Code that runs when objects are released may ask for the next leaf: by then there is none.
    const std::unique_ptr<Progress> exhausted = std::move(iterator.progress);
    exhausted->options.let_go_of_space();
    return nb::object();
}

PyObject *next_leaf(PyObject *self) {
    const nb::object owned = nb::borrow(self);  // a callback may drop the last other reference
    return slot<PyObject *>(nullptr, [&] { return next_of(LeafIteratorBox::of(self)).release().ptr(); });
}

}  // namespace

nb::object make_iterator(nb::handle tree, const FlattenOptions &options) {
    auto progress = std::make_unique<Progress>(options);
    progress->walk.begin(tree.ptr());
    progress->options.let_go_of_space();
    return LeafIteratorBox::make(std::move(progress));
}

void make_iterator_type() {
    LeafIteratorBox::ready("pydag._core.LeafIterator", "The leaves of a DAG, one after the other.",
                           {{Py_tp_iter, reinterpret_cast<void *>(PyObject_SelfIter)},
                            {Py_tp_iternext, reinterpret_cast<void *>(next_leaf)}});
}

}  // namespace pydag
