// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/constant_size.h"
#include "base/gc_pause.h"
#include "base/interrupt.h"
#include "nodes/build.h"
#include "structure/cursor.h"
#include "walks/flatten.h"

namespace pydag {
namespace {

// Copies a tree that is known to have a structure, object by object: a dict is copied as a whole, and only changed
// values are put into the copy. No Python code runs, so the tree can't change meanwhile.
class KnownCopy {
public:
    // `objects`: the object at each node; at an alias the one of the anchor.
    KnownCopy(const Structure &structure, PyObject *const *objects) : structure_(structure), objects_(objects) {
        values_.reserve(structure.num_nodes);
        memo_.reserve(structure.num_shared);
    }

    // Null if the walk had to give up.
    nb::object run() {
        const BuildPause pause;
        PyObject *const *refs = structure_.refs;
        const auto close = [this](const Item &item) { build(item); };
        LookingSteps steps;
        for (uint32_t position = 0; position < structure_.num_nodes; ++position) {
            if (steps.must_give_up()) return nb::object();
            const Node node = structure_.nodes[position];
            if (node.is_leaf() || node.is_none()) {
                values_.push_reserved(incref(objects_[position]));
                if (node.is_anchor) memo_.push_reserved(objects_[position]);
            } else if (node.is_alias()) {
                push_changed(nb::borrow(memo_[node.count]));
            } else if (is_callback(node.kind)) {
                return nb::object();  // building one may run Python code
            } else {
                const Item item = {refs, position, static_cast<uint32_t>(memo_.size()),
                                   static_cast<uint32_t>(changed_.size())};
                if (node.is_anchor) memo_.push_reserved(nullptr);  // until it is built
                refs += num_refs(node);
                around_.add(item, node.count, close);
                continue;
            }
            around_.add_closed(close);
        }
        return values_.pop_owned();
    }

private:
    struct Item {
        PyObject *const *refs;
        uint32_t position, number;  // its own, if it is an anchor
        uint32_t first_changed;
    };

    // Builds a container whose children are the last values.
    void build(const Item &item) {
        const Node node = structure_.nodes[item.position];
        const std::span<const uint32_t> changed(changed_.data() + item.first_changed,
                                                changed_.data() + changed_.size());
        nb::object made = copy_node(node, item.refs, objects_[item.position], changed, values_, once_);
        changed_.resize_down(item.first_changed);
        if (node.is_anchor) memo_[item.number] = made.ptr();
        push_changed(std::move(made));
    }

    // The next child of the innermost open node.
    void push_changed(nb::object child) {
        values_.push_reserved(child.release().ptr());
        if (!around_.empty())
            changed_.push(structure_.nodes[around_.innermost().position].count - around_.num_to_come());
    }

    const Structure &structure_;
    PyObject *const *const objects_;
    Stack values_;
    Buffer<uint32_t, 64> changed_;  // which children of the open nodes are not those of the tree, by their indices
    Nesting<Item> around_;
    MadeOnce once_;
    Buffer<PyObject *, 16>
        memo_;  // the copies of the anchors, by number: `values_`, or a container made of its items, owns them
};

}  // namespace

nb::object copy_known(nb::handle tree, const FlattenOptions &options, bool only_values) {
    const CachedStructure known(tree.ptr(), options.setting());
    BorrowedObjects objects;
    const Structure &structure = known.structure();
    if (known.must_ask() || !look_at_known(structure, tree.ptr(), options, objects)) return nb::object();
    if (structure.nodes[0].is_leaf()) return nb::object();  // which may not be a tree
    for (uint32_t i = 0; only_values && i < structure.num_nodes; ++i)
        if (structure.nodes[i].is_leaf() && !is_kept_by_deepcopy(objects[i])) return nb::object();
    try {
        return KnownCopy(structure, objects.data()).run();
    } catch (nb::python_error &) {  // the other way meets the error again, and names the path
        return nb::object();
    }
}

nb::object copy(nb::handle tree, const FlattenOptions &options) {
    if (nb::object made = copy_known(tree, options, false); made.is_valid()) return made;
    Flattened parts(tree, options);
    parts.remember();
    return unflatten(parts.structure(), parts.leaves().data());
}

}  // namespace pydag
