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

    void run(const Children &children) const {
        std::vector<PyObject *> items;
        for (const nb::object &child : children) items.push_back(child.ptr());
        write_children(kind, refs, object.ptr(), items.data(), static_cast<uint32_t>(items.size()));
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
    struct Open {
        Node node;
        PyObject *const *refs;
        uint32_t number, position, leaf;
    };

    void visit(const Cursor &at, nb::object object) {
        const Node node = at.node();
        if (!node.is_leaf() && !node.is_alias() && !node.is_none()) match_node(node, at.refs(), object, space_, stack_);
        before_.push_new(std::move(object));
        around_.add({node, at.refs(), at.number(), at.position(), at.leaf()}, num_children(node),
                    [this](const Open &complete) { close(complete); });
    }

    // Replaces the children of a node, the last objects and values, by what will stand in the node's own slot.
    void close(const Open &complete) {
        nb::object value = value_of(complete);
        if (complete.node.is_anchor) memo_[complete.number] = value;
        const uint32_t count = num_children(complete.node);
        before_.drop_to(before_.size() - count);
        after_.drop_to(after_.size() - count);
        after_.push_new(std::move(value));
    }

    // What will stand in the slot of a node. For a container that is the object itself; for a tuple in which
    // something changes, a new tuple.
    nb::object value_of(const Open &complete) {
        const Node node = complete.node;
        if (node.is_leaf()) return nb::borrow(leaves_[complete.leaf]);
        if (node.is_alias()) return memo_[node.count];
        PyObject *const *const before = before_.data() + before_.size() - node.count;
        PyObject *const *const after = after_.data() + after_.size() - node.count;
        nb::object object = nb::borrow(before[-1]);
        if (std::equal(before, before + node.count, after)) return object;
        current_ = complete.position;
        const bool is_foreign =
            is_registered(node.kind) && !is_callback(node.kind) && node_registration(complete.refs).is_foreign;
        if (is_writable(node.kind) && !is_foreign) {
            writes_.push_back({object, node.kind, complete.refs, owned(before, node.count), owned(after, node.count)});
            return object;
        }
        if (is_foreign)
            fail(PyExc_TypeError,
                 "%R is registered with another library, and its objects are not changed in place\n"
                 "  Build a new tree with pydag.dag_map.",
                 class_of(object).ptr());
        if (is_callback(node.kind))
            fail(PyExc_TypeError,
                 "%R is opened by a flatten function and can't be changed in place\n"
                 "  Register it by its fields (pydag.register_fields), or build a new tree with pydag.dag_map.",
                 class_of(object).ptr());
        Stack values;
        for (uint32_t i = 0; i < node.count; ++i) values.push_borrowed(after[i]);
        return build_node(node.kind, complete.refs, values, 0);
    }

    static Children owned(PyObject *const *objects, uint32_t count) {
        Children children;
        for (uint32_t i = 0; i < count; ++i) children.push_back(nb::borrow(objects[i]));
        return children;
    }

    const Structure &structure_;
    const Leaves &leaves_;
    Namespace &space_;
    std::vector<Write> &writes_;
    Stack stack_;                   // what stands in the slots to come
    RefBuffer<48> before_, after_;  // objects of the target, and what replaces them, of which the node is not complete
    Nesting<Open> around_;
    Children memo_;  // what replaces each shared object, by its number
    uint32_t current_ = 0;
};

void write_all(const std::vector<Write> &writes) {
    size_t done = 0;
    try {
        for (; done < writes.size(); ++done) {
            interruptible_step();
            writes[done].run(writes[done].after);
        }
    } catch (...) {
        for (size_t i = std::min(done + 1, writes.size()); i-- > 0;) {
            try {
                writes[i].run(writes[i].before);
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
    if (!is_writable(root) && !is_callback(root))
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
