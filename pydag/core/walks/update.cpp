// SPDX-License-Identifier: Apache-2.0
#include "walks/update.h"

#include "base/interrupt.h"
#include "nodes/build.h"
#include "nodes/match_node.h"
#include "nodes/write.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "walks/match.h"

#include <algorithm>
#include <vector>

namespace pydag {
namespace {

using Children = std::vector<nb::object>;

// New children for one container.
struct Write {
    nb::object object;
    Kind kind;
    PyObject *const *refs;
    Children before, after;

    void run(const Children &children, MadeOnce &once) const {
        std::vector<PyObject *> items;
        for (const nb::object &child : children) items.push_back(child.ptr());
        write_children(kind, refs, object.ptr(), items.data(), static_cast<uint32_t>(items.size()), once);
    }
};

// Goes through the target along its structure and finds out what has to be written where.
class Planner {
public:
    Planner(const Structure &structure, const Leaves &leaves, Namespace &space, std::vector<Write> &writes)
        : structure_(structure), leaves_(leaves), space_(space), writes_(writes), memo_(structure.num_shared) {}

    void run(PyObject *target) {
        stack_.push_borrowed(target);
        Cursor at(structure_);
        try {
            for (; at.is_at_node(); at.step()) {
                current_ = at.position();
                interruptible_step();
                visit(at, stack_.pop_owned());
            }
        } catch (...) {
            rethrow_at([&] { return path_text(steps_to(structure_, {current_}).front()); }, "updating");
        }
    }

private:
    struct Frame {
        nb::object object;
        Node node;
        PyObject *const *refs;
        uint32_t number, position;
        Children before;
        Children after;  // those that are known by now
    };

    void visit(const Cursor &at, nb::object object) {
        const Node node = at.node();
        if (node.is_leaf()) return add(nb::borrow(leaves_[at.leaf()]), node, at.number());
        if (node.is_alias()) return add(memo_[node.count], node, 0);
        const size_t base = stack_.size();
        if (!node.is_none()) match_node(node, at.refs(), object, space_, stack_);
        Frame frame = {std::move(object), node, at.refs(), at.number(), at.position(), {}, {}};
        for (size_t i = stack_.size(); i > base; --i) frame.before.push_back(nb::borrow(stack_[i - 1]));
        frames_.push_back(std::move(frame));
        close_full_frames();
    }

    // Notes what the next slot of the innermost open container will hold.
    void add(nb::object value, Node node, uint32_t number) {
        if (node.is_anchor) memo_[number] = value;
        if (frames_.empty()) return;
        frames_.back().after.push_back(std::move(value));
        close_full_frames();
    }

    void close_full_frames() {
        while (!frames_.empty() && frames_.back().after.size() == frames_.back().before.size()) {
            Frame frame = std::move(frames_.back());
            frames_.pop_back();
            nb::object value = finish(frame);
            if (frame.node.is_anchor) memo_[frame.number] = value;
            if (!frames_.empty()) frames_.back().after.push_back(std::move(value));
        }
    }

    // The object itself; for a tuple in which something changes, a new tuple.
    nb::object finish(Frame &frame) {
        const auto is_same = [](const nb::object &a, const nb::object &b) { return a.is(b); };
        if (std::equal(frame.after.begin(), frame.after.end(), frame.before.begin(), is_same)) return frame.object;
        current_ = frame.position;
        const bool is_foreign =
            is_registered(frame.node.kind) && !is_callback(frame.node.kind) && node_registration(frame.refs).is_foreign;
        if (is_writable(frame.node.kind, frame.refs) && !is_foreign) {
            writes_.push_back({frame.object, frame.node.kind, frame.refs, frame.before, frame.after});
            return frame.object;
        }
        if (is_foreign)
            fail(PyExc_TypeError,
                 "%R is registered with another library, and its objects are not changed in place\n"
                 "  Build a new tree with pydag.dag_map.",
                 class_of(frame.object).ptr());
        if (is_callback(frame.node.kind))
            fail(PyExc_TypeError,
                 "%R is opened by a flatten function and can't be changed in place\n"
                 "  Register it by its fields (pydag.register_fields), or build a new tree with pydag.dag_map.",
                 class_of(frame.object).ptr());
        Stack values;
        for (const nb::object &child : frame.after) values.push_borrowed(child.ptr());
        return build_node(frame.node.kind, frame.refs, values, 0, once_);
    }

    const Structure &structure_;
    const Leaves &leaves_;
    Namespace &space_;
    std::vector<Write> &writes_;
    Stack stack_;
    std::vector<Frame> frames_;
    Children memo_;  // what replaces each shared object, by its number
    uint32_t current_ = 0;
    MadeOnce once_;
};

void write_all(const std::vector<Write> &writes) {
    size_t done = 0;
    MadeOnce once;
    try {
        for (; done < writes.size(); ++done) {
            interruptible_step();
            writes[done].run(writes[done].after, once);
        }
    } catch (...) {
        for (size_t i = std::min(done + 1, writes.size()); i-- > 0;) {
            try {
                writes[i].run(writes[i].before, once);
            } catch (...) {  // the first error is the one that is reported
            }
        }
        throw;
    }
}

}  // namespace

void update(nb::handle target, nb::handle source, const FlattenOptions &options) {
    Flattened parts(target, options);
    const nb::object spec = parts.take_spec();
    const Structure &structure = spec_of(spec).structure();
    const Kind root = structure.nodes[0].kind;
    if (!is_writable(root, structure.refs) && !is_callback(root))
        fail(PyExc_TypeError,
             "a %s can't be updated in place: the root must be a container that can be changed, got %U.",
             traits(root).name, short_repr(target).ptr());
    Leaves leaves;
    match(structure, source.ptr(), leaves);
    std::vector<Write> writes;
    Planner(structure, leaves, *options.space, writes).run(target.ptr());
    write_all(writes);
}

}  // namespace pydag
