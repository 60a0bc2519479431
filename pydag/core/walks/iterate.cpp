// SPDX-License-Identifier: Apache-2.0
#include "walks/iterate.h"

#include "base/box.h"
#include "base/stack_room.h"
#include "walks/flatten_general.h"

#include <atomic>
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

// Threads that share an iterator wait for one another; a thread that asks for the next leaf within its own walk is told
// so. The mutex is held while callbacks run: one that waits for a thread that waits for the iterator waits for ever.
class Turn {
public:
    bool is_own() const {
        const PyThreadState *const owner = owner_.load(std::memory_order_relaxed);
        return owner && owner == PyThreadState_Get();
    }
    void begin() {
        while (!try_to_begin()) {
            PyThreadState *const owner = owner_.load(std::memory_order_relaxed);
            if (!owner) continue;
            Py_BEGIN_ALLOW_THREADS;
            owner_.wait(owner);
            Py_END_ALLOW_THREADS;
        }
    }
    void end() {
        owner_.store(nullptr, std::memory_order_release);
        owner_.notify_one();
    }

private:
    bool try_to_begin() {
        PyThreadState *nobody = nullptr;
#ifdef Py_GIL_DISABLED
        return owner_.compare_exchange_strong(nobody, PyThreadState_Get(), std::memory_order_acquire);
#else
        if (owner_.load(std::memory_order_relaxed) != nobody) return false;
        owner_.store(PyThreadState_Get(), std::memory_order_relaxed);
        return true;
#endif
    }

    std::atomic<PyThreadState *> owner_ = nullptr;
};

struct LeafIterator {
    std::unique_ptr<Progress> progress;  // null: there are no more leaves
    Turn turn = {};

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
        explicit Running(LeafIterator &iterator) : iterator(iterator) { iterator.turn.begin(); }
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
