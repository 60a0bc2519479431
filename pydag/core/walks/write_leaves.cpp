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

// New children for one container. Of the objects that belong to it the first is the container, the second what
// writes it (None: the core), then come the children that it has, and those that it gets.
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

    void run(nb::handle target, nb::handle then) const {
        size_t done = 0;
        try {
            for (; done < writes_.size(); ++done) {
                interruptible_step();
                write(writes_[done], true);
            }
            if (then.is_valid() && !then.is_none()) call(then, target);
        } catch (...) {
            for (size_t i = std::min(done + 1, writes_.size()); i-- > 0;) {
                try {
                    write(writes_[i], false);
                } catch (...) {  // the first error is the one that is reported
                }
            }
            throw;
        }
    }

private:
    void write(const Write &todo, bool forward) const {
        PyObject *const *const objects = objects_.data() + todo.first;
        PyObject *const *const children = objects + 2 + (forward ? todo.count : 0);
        if (objects[1] == Py_None) write_children(todo.kind, todo.refs, objects[0], children, todo.count);
        else call(objects[1], nb::handle(objects[0]), tuple_of(children, todo.count));
    }

    RefBuffer<64> objects_;
    Buffer<Write, 16> writes_;
};

// Goes through the target along its structure and finds out what has to be written where.
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
            rethrow_at([&] { return path_text(steps_to(structure_, {current_}).front()); }, "updating");
        }
    }

private:
    // A container whose children are still to come. The object is the last one of `open_objects_`.
    struct Frame {
        Node node;
        PyObject *const *refs;
        uint32_t number, position;
        size_t base, end;  // of its children among all
    };

    void visit(const Cursor &at) {
        const Node node = at.node();
        nb::object object = stack_.pop_owned();
        if (node.is_leaf()) {
            PyObject *const leaf = given_.leaves[at.leaf()];
            nb::object after = nb::borrow(leaf ? leaf : object.ptr());
            return add(std::move(object), std::move(after), node, at.number());
        }
        if (node.is_alias()) {
            nb::object after = nb::borrow(memo_[node.count]);
            return add(std::move(object), std::move(after), node, 0);
        }
        const size_t below = stack_.size();
        if (!node.is_none()) match_node(node, at.refs(), object, given_.space, stack_);
        frames_.push(
            {node, at.refs(), at.number(), at.position(), before_.size(), before_.size() + (stack_.size() - below)});
        open_objects_.push_new(std::move(object));
        close_full_frames();
    }

    // Notes what the next slot of the innermost open container holds, and what it will hold.
    void note(nb::object before, nb::object after, Node node, uint32_t number) {
        if (node.is_anchor) memo_.replace(number, after);
        before_.push_new(std::move(before));
        after_.push_new(std::move(after));
    }

    void add(nb::object before, nb::object after, Node node, uint32_t number) {
        note(std::move(before), std::move(after), node, number);
        close_full_frames();
    }

    void close_full_frames() {
        while (!frames_.empty() && frames_.back().end == before_.size()) {
            const Frame frame = frames_.back();
            PyObject *const object = open_objects_.back();
            PyObject *const *const before = before_.data() + frame.base, *const *const after =
                                                                             after_.data() + frame.base;
            const auto count = static_cast<uint32_t>(frame.end - frame.base);
            nb::object value = std::equal(before, before + count, after) ? nb::borrow(object)
                                                                         : finish(frame, object, before, after, count);
            frames_.pop();
            before_.drop_to(frame.base);
            after_.drop_to(frame.base);
            note(open_objects_.pop_owned(), std::move(value), frame.node, frame.number);
        }
    }

    // The object itself; for a tuple in which something changes, a new tuple.
    nb::object finish(const Frame &frame, nb::handle object, PyObject *const *before, PyObject *const *after,
                      uint32_t count) {
        const Kind kind = frame.node.kind;
        current_ = frame.position;
        if (is_callback(kind)) {
            const nb::object writer = writer_of(class_of(object));
            writes_.add(kind, frame.refs, object.ptr(), writer.ptr(), before, after, count);
            return nb::borrow(object);
        }
        if (!is_writable(kind)) {
            Stack values;
            for (uint32_t i = 0; i < count; ++i) values.push_borrowed(after[i]);
            return build_node(kind, frame.refs, values, 0);
        }
        if (is_registered(kind) && !given_.writes_foreign && node_registration(frame.refs).is_foreign)
            fail(PyExc_TypeError,
                 "%R is registered with another library, and its objects are not changed in place\n"
                 "  Build a new tree with pydag.dag_map.",
                 class_of(object).ptr());
        writes_.add(kind, frame.refs, object.ptr(), Py_None, before, after, count);
        return nb::borrow(object);
    }

    nb::object writer_of(nb::handle cls) {
        nb::object writer = given_.writers.is_valid() ? call(given_.writers, cls) : nb::none();
        if (writer.is_none())
            fail(PyExc_TypeError,
                 "%R is opened by a flatten function and can't be changed in place\n"
                 "  Register it by its fields (pydag.register_fields), or build a new tree with pydag.dag_map.",
                 cls.ptr());
        return writer;
    }

    const NewLeaves &given_;
    const Structure &structure_;
    Writes &writes_;
    Stack stack_;
    Buffer<Frame, 16> frames_;
    RefBuffer<16> open_objects_, memo_;  // memo_: what replaces each shared object, by its number
    RefBuffer<64> before_, after_;       // the children of the open containers, as far as they are known
    uint32_t current_ = 0;
};

}  // namespace

void write_leaves(nb::handle target, const NewLeaves &given) {
    Writes writes;
    Planner(given, writes).run(target);
    writes.run(target, given.then);
}

}  // namespace pydag
