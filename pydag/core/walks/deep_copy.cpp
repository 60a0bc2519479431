// SPDX-License-Identifier: Apache-2.0
#include "base/constant_size.h"
#include "base/interrupt.h"
#include "nodes/build.h"
#include "structure/cursor.h"
#include "structure/paths.h"
#include "types/fields.h"
#include "walks/walks.h"

namespace pydag {
namespace {

// Whether a node has keys of which `copy.deepcopy` may make others.
bool copies_keys(Node node, PyObject *const *refs) {
    return traits(node.kind).is_mapping && !MappingRefs{refs}.keys().has_constant_hashes;
}

// A copy in which nothing of the tree is left but what `copy.deepcopy` leaves, too. `memo` is the one of
// `copy.deepcopy`: copies by the addresses of what they are copies of. It knows lists and dicts before their content is
// copied, so that an object may refer back to one. User code gets the memo: it may lack what was put into it.
class DeepCopy {
public:
    // `objects` own what the memo knows by address.
    DeepCopy(const Structure &structure, const NodeObjects &objects, nb::handle copier, bool leaf_identity)
        : structure_(structure), objects_(objects), copier_(copier), leaf_identity_(leaf_identity) {}

    nb::object run() {
        Nesting<Item> around;
        const auto close = [this](const Item &item) { build(item); };
        for (Cursor at(structure_); at.is_at_node();) {
            interruptible_step();
            const Item item = {at.refs(), position_ = at.position()};
            const Node node = at.node();
            if (node.is_leaf() || node.is_none()) {
                values_.push_new(copy_leaf(objects_[position_]));
            } else if (node.is_alias()) {
                values_.push_new(copy_object(objects_[position_]));
            } else if (nb::object made = find(objects_[position_]); made.is_valid()) {
                values_.push_new(std::move(made));  // a leaf refers to it
                skip_below(at);
            } else {
                at.step();
                open(node);
                around.add(item, node.count, close);
                continue;
            }
            at.step();
            around.add_closed(close);
        }
        return values_.pop_owned();
    }

    uint32_t position() const { return position_; }

private:
    struct Item {
        PyObject *const *refs;
        uint32_t position;
    };

    void open(Node node) {
        nb::object shell = empty_node(node.kind);
        if (!shell.is_none()) note(objects_[position_], shell);
        shells_.push_new(std::move(shell));
    }

    // Builds a node whose children are the last values.
    void build(const Item &item) {
        const Node node = structure_.nodes[item.position];
        PyObject *const object = objects_[item.position];
        position_ = item.position;
        nb::object made = build_node(node.kind, item.refs, values_, values_.size() - node.count, once_);
        if (copies_keys(node, item.refs)) made = with_new_keys(made);
        const nb::object shell = shells_.pop_owned();
        if (!shell.is_none()) {
            fill(shell, made);
            made = shell;
        } else if (nb::object known = find(object); known.is_valid()) {
            made = std::move(known);  // a leaf below it refers to it
        } else if (has_identity(node.kind, item.refs)) {
            note(object, made);
        }
        values_.push_new(std::move(made));
    }

    static void fill(const nb::object &shell, const nb::object &made) {
        if (PyList_Check(shell.ptr()))
            checked(PyList_SetSlice(shell.ptr(), 0, PyList_GET_SIZE(shell.ptr()), made.ptr()));
        else PyDict_Clear(shell.ptr()), checked(PyDict_Update(shell.ptr(), made.ptr()));
    }

    // The same mapping with copies of its keys.
    nb::object with_new_keys(const nb::object &mapping) {
        const nb::object items = checked(PyMapping_Items(mapping.ptr()));
        PyObject *const *const pairs = PySequence_Fast_ITEMS(items.ptr());
        nb::object made = checked(PyDict_New());  // which knows no class: an ordered one has an order of its own
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.ptr()); ++i)
            checked(PyDict_SetItem(made.ptr(), copy_leaf(PyTuple_GET_ITEM(pairs[i], 0)).ptr(),
                                   PyTuple_GET_ITEM(pairs[i], 1)));
        if (!PyDict_Check(mapping.ptr())) return call(class_of(mapping), made);  // a frozendict
        mapping.attr("clear")();
        mapping.attr("update")(made);
        return mapping;
    }

    void skip_below(Cursor &at) const {
        for (uint32_t left = at.node().count; left > 0; --left) {
            at.step();
            left += num_children(at.node());
        }
    }

    nb::object copy_leaf(PyObject *leaf) {
        if (!leaf_identity_ && !is_kept_by_deepcopy(leaf) && find(leaf).is_valid())
            checked(PyDict_DelItem(memo_.ptr(), checked(PyLong_FromVoidPtr(leaf)).ptr()));
        return copy_object(leaf);
    }

    nb::object copy_object(PyObject *object) {
        if (is_kept_by_deepcopy(object)) return nb::borrow(object);
        if (nb::object known = find(object); known.is_valid()) return known;
        return call(copier_, nb::handle(object), memo_);
    }

    nb::object find(PyObject *object) const { return find_in_dict(memo_, checked(PyLong_FromVoidPtr(object))); }
    void note(PyObject *object, const nb::object &made) {
        checked(PyDict_SetItem(memo_.ptr(), checked(PyLong_FromVoidPtr(object)).ptr(), made.ptr()));
    }

    const Structure &structure_;
    const NodeObjects &objects_;
    nb::handle copier_;
    bool leaf_identity_;
    nb::object memo_ = checked(PyDict_New());
    Stack values_;
    RefBuffer<24> shells_;  // of the open nodes: an empty list or dict, or None
    MadeOnce once_;
    uint32_t position_ = 0;
};

// Copies leaves that can't refer to a node: values, and what a function of C copies, such as NumPy's arrays. False
// where there is another leaf, or a mapping with keys that have to be copied.
bool copy_plain(const Structure &structure, const Leaves &leaves, Leaves &copies) {
    for (Cursor at(structure); at.is_at_node(); at.step())
        if (copies_keys(at.node(), at.refs())) return false;
    const nb::object memo = checked(PyDict_New());
    nb::object type, copier;  // the class of the last leaf, and how it is copied
    copies.reserve(leaves.size());
    for (size_t i = 0; i < leaves.size(); ++i) {
        interruptible_step();
        const nb::handle leaf = leaves[i];
        if (is_kept_by_deepcopy(leaf.ptr())) {
            copies.push_reserved(incref(leaf.ptr()));
            continue;
        }
        if (!type.is(as_object(Py_TYPE(leaf.ptr())))) {
            type = class_of(leaf);
            copier = find_class_attribute(Py_TYPE(leaf.ptr()), constants.deepcopy);
        }
        if (!copier.is_valid() || !Py_IS_TYPE(copier.ptr(), &PyMethodDescr_Type)) return false;
        copies.push_new(call(copier, leaf, memo));
        if (PyDict_GET_SIZE(memo.ptr()) > 0) return false;  // an array of objects
    }
    return true;
}

}  // namespace

nb::object deep_copy(nb::handle tree, nb::handle copier, const FlattenOptions &options) {
    if (nb::object made = copy_known(tree, options, true); made.is_valid()) return made;
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    parts.remember();
    const Structure structure = parts.structure();
    Leaves copies;
    if (copy_plain(structure, parts.leaves(), copies)) return unflatten(structure, copies.data(), "copying");
    DeepCopy walk(structure, objects, copier, options.leaf_identity);
    try {
        return walk.run();
    } catch (...) {
        rethrow_at(structure, walk.position(), "copying");
    }
}

}  // namespace pydag
