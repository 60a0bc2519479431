// SPDX-License-Identifier: Apache-2.0
#include "walks/write_leaves.h"

#include "base/interrupt.h"
#include "base/tuples.h"
#include "nodes/build.h"
#include "nodes/match_node.h"
#include "nodes/write.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/paths.h"

namespace pydag {
namespace {

// New children for one container. `first` is the index of its first object: the container; then what writes it
// (None: the core); then the `count` children that it has, and the `count` children that it gets.
struct Write {
    Kind kind;
    PyObject *const *refs;
    size_t first;
    uint32_t count;
};

class Writes {
public:
    void add(Kind kind, PyObject *const *refs, PyObject *object, PyObject *writer, PyObject *const *before,
             PyObject *const *after, uint32_t count) {
        const size_t first = objects_.size();
        objects_.push_borrowed(object);
        objects_.push_borrowed(writer);
        for (uint32_t i = 0; i < count; ++i) objects_.push_borrowed(before[i]);
        for (uint32_t i = 0; i < count; ++i) objects_.push_borrowed(after[i]);
        writes_.push({kind, refs, first, count});
    }

    void run() const {
        size_t done = 0;
        MadeOnce once;
        try {
            for (; done < writes_.size(); ++done) {
                interruptible_step();
                write(writes_[done], true, once);
            }
        } catch (...) {
            for (size_t i = std::min(done + 1, writes_.size()); i-- > 0;) {
                try {
                    write(writes_[i], false, once);
                } catch (...) {  // the first error is the one that is reported
                }
            }
            throw;
        }
    }

private:
    void write(const Write &todo, bool forward, MadeOnce &once) const {
        PyObject *const *const objects = objects_.data() + todo.first;
        PyObject *const *const children = objects + 2 + (forward ? todo.count : 0);
        if (objects[1] == Py_None) write_children(todo.kind, todo.refs, objects[0], children, todo.count, once);
        else call(objects[1], nb::handle(objects[0]), tuple_of(children, todo.count));
    }

    RefBuffer<64> objects_;
    Buffer<Write, 16> writes_;
};

// Walks the target along its structure, and adds what has to be written to `writes`.
class Planner {
public:
    Planner(const NewLeaves &given, Writes &writes) : given_(given), structure_(given.structure), writes_(writes) {
        PyObject **const slots = memo_.extend(structure_.num_shared);
        for (uint32_t i = 0; i < structure_.num_shared; ++i) slots[i] = incref(Py_None);
    }

    void run(nb::handle target) {
        stack_.push_borrowed(target.ptr());
        Cursor at(structure_);
        try {
            for (; at.is_at_node(); at.step()) {
                current_ = at.position();
                interruptible_step();
                visit(at);
            }
        } catch (...) {
            rethrow_at(structure_, current_, "updating", given_.roots);
        }
    }

private:
    struct Open {
        Node node;
        PyObject *const *refs;
        uint32_t number, position, leaf;
    };

    void visit(const Cursor &at) {
        const Node node = at.node();
        nb::object object = stack_.pop_owned();
        if (!node.is_leaf() && !node.is_alias() && !node.is_none())
            match_node(node, at.refs(), object, given_.space, stack_);
        before_.push_new(std::move(object));
        around_.add({node, at.refs(), at.number(), at.position(), at.leaf()}, num_children(node),
                    [this](const Open &complete) { close(complete); });
    }

    // Takes the children of a node off both stacks, and pushes what will stand in the place of the node itself.
    void close(const Open &complete) {
        nb::object value = value_of(complete);
        if (complete.node.is_anchor) memo_.replace(complete.number, value);
        const uint32_t count = num_children(complete.node);
        before_.drop_to(before_.size() - count);
        after_.drop_to(after_.size() - count);
        after_.push_new(std::move(value));
    }

    nb::object value_of(const Open &complete) {
        const Node node = complete.node;
        if (node.is_alias()) return nb::borrow(memo_[node.count]);
        if (node.is_leaf()) {
            PyObject *const leaf = given_.leaves[complete.leaf];
            return nb::borrow(leaf ? leaf : before_.back());
        }
        PyObject *const *const before = before_.data() + before_.size() - node.count;
        PyObject *const *const after = after_.data() + after_.size() - node.count;
        const nb::object object = nb::borrow(before[-1]);
        return std::equal(before, before + node.count, after) ? object : finish(complete, object, before, after);
    }

    // What stands in the place of a node whose children change: the object itself, or a new tuple.
    nb::object finish(const Open &complete, const nb::object &object, PyObject *const *before, PyObject *const *after) {
        const Kind kind = complete.node.kind;
        const uint32_t count = complete.node.count;
        current_ = complete.position;
        const bool is_by_core = is_writable(kind, complete.refs);
        if (!is_by_core && is_callback(kind)) {
            const nb::object writer = writer_of(class_of(object));
            writes_.add(kind, complete.refs, object.ptr(), writer.ptr(), before, after, count);
            return object;
        }
        if (!is_by_core) {
            Stack values;
            for (uint32_t i = 0; i < count; ++i) values.push_borrowed(after[i]);
            return build_node(kind, complete.refs, values, 0, once_);
        }
        const bool is_foreign =
            is_registered(kind) && !is_callback(kind) && node_registration(complete.refs).is_foreign;
        if (is_foreign && !given_.writes_foreign)
            fail(PyExc_TypeError,
                 "%R is registered with another library, and its objects are not changed in place\n"
                 "  Build a new tree with pydag.dag_map.",
                 class_of(object).ptr());
        writes_.add(kind, complete.refs, object.ptr(), Py_None, before, after, count);
        return object;
    }

    nb::object writer_of(nb::handle cls) {
        nb::object writer =
            given_.writers.is_valid() && !given_.writers.is_none() ? call(given_.writers, cls) : nb::none();
        if (writer.is_none())
            fail(PyExc_TypeError,
                 "%R is opened by a flatten function and can't be changed in place\n"
                 "  Register its class by fields, with pydag.register_fields; or put a new object into what "
                 "holds it yourself, outside of what is updated.",
                 cls.ptr());
        return writer;
    }

    const NewLeaves &given_;
    const Structure &structure_;
    Writes &writes_;
    Stack stack_;                   // the objects of the nodes to come
    RefBuffer<48> before_, after_;  // objects of the target, and what replaces them, whose parents are not closed
    Nesting<Open> around_;
    RefBuffer<16> memo_;  // what replaces each shared object, by its number
    uint32_t current_ = 0;
    MadeOnce once_;
};

}  // namespace

void write_leaves(nb::handle target, const NewLeaves &given) {
    Writes writes;
    Planner(given, writes).run(target);
    writes.run();
}

}  // namespace pydag
