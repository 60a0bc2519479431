// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/equality.h"
#include "base/tuples.h"
#include "nodes/build.h"
#include "nodes/nodes.h"
#include "spec/spec.h"
#include "walks/fold_structure.h"

#include <unordered_map>

namespace pydag {
namespace {

// New children for one container. `first` is the index of its objects: the container; its writer (None: the core); its
// `count` old children; its `count` new children.
struct Write {
    Kind kind;
    PyObject *const *refs;
    size_t first;
    uint32_t count;
};

class Writes {
public:
    void add(const VisitedNode &at, nb::handle object, nb::handle writer, const NodeObjects &before,
             PyObject *const *after) {
        const uint32_t count = at.node.count;
        writes_.push({at.node.kind, at.refs, objects_.size(), count});
        objects_.push_borrowed(object.ptr());
        objects_.push_borrowed(writer.ptr());
        for (uint32_t i = 0; i < count; ++i) objects_.push_borrowed(before[at.children[i]]);
        for (uint32_t i = 0; i < count; ++i) objects_.push_borrowed(after[i]);
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

// The object at each node of the target, by its position.
void find_objects(nb::handle target, const NewLeaves &given, NodeObjects &objects) {
    Stack stack;
    stack.push_borrowed(target.ptr());
    uint32_t position = 0;
    try {
        for (Cursor at(given.structure); at.is_at_node(); at.step()) {
            position = at.position();
            interruptible_step();
            objects.push_new(stack.pop_owned());
            const Node node = at.node();
            if (!node.is_leaf() && !node.is_alias() && !node.is_none())
                match_node(node, at.refs(), objects.back(), given.space, stack);
        }
    } catch (...) {
        rethrow_at(given.structure, position, "updating", given.roots);
    }
}

// Refuses to change an instance of a frozen class. `known`: the answers for the classes that were met.
void check_not_frozen(nb::handle cls, const NewLeaves &given, std::unordered_map<PyObject *, bool> &known) {
    if (!given.is_frozen.is_valid() || given.is_frozen.is_none()) return;
    const auto [found, is_new] = known.try_emplace(cls.ptr());
    if (is_new) found->second = nb::cast<bool>(call(given.is_frozen, cls));
    if (!found->second) return;
    fail(PyExc_TypeError,
         "%R is frozen: its instances can't be changed in place\n"
         "  Build a new tree, with pydag.dag_map or pydag.dag_replace.",
         cls.ptr());
}

// The function that writes a node whose children change; None: the core writes it.
nb::object find_writer(const VisitedNode &at, nb::handle cls, const NewLeaves &given) {
    const Kind kind = at.node.kind;
    if (!is_writable(kind, at.refs)) {
        nb::object writer =
            given.writers.is_valid() && !given.writers.is_none() ? call(given.writers, cls) : nb::none();
        if (!writer.is_none()) return writer;
        fail(PyExc_TypeError,
             "%R is opened by a flatten function and can't be changed in place\n"
             "  Register its class by fields, with pydag.register_fields; or put a new object into what "
             "holds it yourself, outside of what is updated.",
             cls.ptr());
    }
    if (is_registered(kind) && !is_callback(kind) && node_registration(at.refs).is_foreign && !given.writes_foreign)
        fail(PyExc_TypeError,
             "%R is registered with another library, and its objects are not changed in place\n"
             "  Build a new tree with pydag.dag_map.",
             cls.ptr());
    return nb::none();
}

void check_shapes(const Structure &structure, const Leaves &before, const Leaves &after) {
    size_t leaf = 0;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        if (!structure.nodes[i].is_leaf()) continue;
        const nb::object one = nb::borrow(before[leaf]), other = nb::borrow(after[leaf]);
        ++leaf;
        if (!differ_in_shape(one, other)) continue;
        fail(PyExc_ValueError,
             "an update writes arrays of the shapes that are there\n  %s: %U\n  source: %U\n"
             "  Assign an array of another shape to the attribute or item itself.",
             path_of(structure, i).c_str(), short_repr(one).ptr(), short_repr(other).ptr());
    }
}

}  // namespace

void write_leaves(nb::handle target, const NewLeaves &given, NodeObjects &objects) {
    find_objects(target, given, objects);
    Writes writes;
    MadeOnce once;
    PyObject *const *next_leaf = given.leaves;
    std::unordered_map<PyObject *, bool> frozen;  // the objects own their classes
    // Returns the object that replaces a node: the object itself, or a new tuple.
    const auto replacement = [&](const VisitedNode &at, Stack &results) {
        nb::object object = nb::borrow(objects[at.position]);
        if (at.node.is_leaf()) {
            PyObject *const leaf = *next_leaf++;
            return leaf ? nb::borrow(leaf) : object;
        }
        const size_t base = results.size() - at.node.count;
        PyObject *const *const children = results.data() + base;
        if (!at.keeps_children(objects.data(), children)) {
            if (!is_writable(at.node.kind, at.refs) && !is_callback(at.node.kind))
                return build_node(at.node.kind, at.refs, results, base, once);
            const nb::object cls = class_of(object), writer = find_writer(at, cls, given);
            if (writer.is_none() && is_registered(at.node.kind)) check_not_frozen(cls, given, frozen);
            writes.add(at, object, writer, objects, children);
        }
        results.drop_to(base);
        return object;
    };
    fold_structure(given.structure, "updating", replacement, given.roots);
    writes.run();
}

void update(nb::handle target, nb::handle source, nb::handle writers, nb::handle is_frozen,
            const FlattenOptions &options) {
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
    check_shapes(structure, parts.leaves(), leaves);
    NodeObjects objects;
    write_leaves(target,
                 {.structure = structure,
                  .leaves = leaves.data(),
                  .space = *options.space,
                  .writers = writers,
                  .is_frozen = is_frozen},
                 objects);
}

}  // namespace pydag
