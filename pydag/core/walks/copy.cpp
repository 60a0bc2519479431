// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/constant_size.h"
#include "base/gc_pause.h"
#include "base/interrupt.h"
#include "nodes/build.h"
#include "structure/cursor.h"
#include "walks/flatten.h"
#include "walks/leaf_class.h"

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
    // The copies of the anchors, by number: `values_`, or a container made of its items, owns them.
    Buffer<PyObject *, 16> memo_;
};

// Copies a tree of dicts, lists and tuples that holds only what `copy.deepcopy` keeps, from the root down and without
// its structure: a container is made when it is met, and filled afterwards. Here, too, no Python code runs.
class ValuesCopy {
public:
    explicit ValuesCopy(const FlattenOptions &options) : options_(options) {}
    // Null if the walk had to give up.
    [[gnu::noinline]] nb::object run(nb::handle tree) {
        const BuildPause pause;
        const nb::object root = checked(PyTuple_Pack(1, tree.ptr())), made = checked(PyTuple_New(1));
        Open at = {root.ptr(), made.ptr(), 0, kNone, false};
        LookingSteps steps;
        for (PyObject *key = nullptr, *next = nullptr;;) {
            if (PyDict_CheckExact(at.source) ? pass_values_of_dict(at, key, next) : pass_values(at, next)) {
                if (at.number != kNone) copies_[at.number] = at.copy;
                if (open_.empty()) return nb::borrow(PyTuple_GET_ITEM(made.ptr(), 0));
                at = open_.pop();
                continue;
            }
            if (!next || !is_container(Py_TYPE(next)) || steps.must_give_up()) return nb::object();
            const bool is_tuple = PyTuple_CheckExact(next), is_only_way = at.owns_slots && has_references(next, 1);
            const auto count = static_cast<uint32_t>(copies_.size());
            uint32_t number = is_only_way ? kNone : numbers_.find_or_add(next, count);
            if (number != kNone && !copies_[number]) return nb::object();  // it contains itself
            if (number != kNone && !is_tuple) {
                put(nb::borrow(copies_[number]), at, key);
                continue;
            }
            if (number == kNone && !is_only_way) copies_.push(nullptr), number = count;
            nb::object copy = checked(is_tuple                  ? PyTuple_New(PyTuple_GET_SIZE(next))
                                      : PyList_CheckExact(next) ? PyList_New(PyList_GET_SIZE(next))
                                                                : PyDict_Copy(next));
            const Open below = {next, copy.ptr(), 0, number, is_only_way || PyList_CheckExact(next)};
            put(std::move(copy), at, key);
            open_.push(std::exchange(at, below));
        }
    }

private:
    static constexpr uint32_t kNone = IdentityTable::kNew;
    struct Open {
        PyObject *source, *copy;
        Py_ssize_t next;  // the index of the next child, or its position in the dict
        uint32_t number;  // in `copies_`; kNone if no second way leads to it
        bool owns_slots;  // see owns_its_slots
    };

    // These copy values up to another object. True at the end.
    bool pass_values(Open &at, PyObject *&next) {
        PyObject **const items = PySequence_Fast_ITEMS(at.source), **const copied = PySequence_Fast_ITEMS(at.copy);
        for (Py_ssize_t i = at.next, size = Py_SIZE(at.source); i < size; copied[i] = incref(next), ++i) {
            next = items[i], at.next = i;
            if (!next || !is_value(next)) return false;
        }
        return true;
    }
    bool pass_values_of_dict(Open &at, PyObject *&key, PyObject *&next) {
        while (PyDict_Next(at.source, &at.next, &key, &next)) {
            if (!is_exact_str(key) && !has_constant_hash(key)) next = nullptr;
            if (!next || !is_value(next)) return false;
        }
        return true;
    }
    static void put(nb::object copy, Open &at, PyObject *key) {
        if (PyDict_CheckExact(at.source)) checked(PyDict_SetItem(at.copy, key, copy.ptr()));
        else PySequence_Fast_ITEMS(at.copy)[at.next++] = copy.release().ptr();
    }

    static bool is_container(PyTypeObject *type) {
        return type == &PyDict_Type || type == &PyList_Type || type == &PyTuple_Type;
    }
    bool is_value(PyObject *object) {
        PyTypeObject *const type = Py_TYPE(object);
        return type == classes_[0] || type == classes_[1] || (!is_container(type) && is_of_values(type, object));
    }
    [[gnu::noinline]] bool is_of_values(PyTypeObject *type, PyObject *object) {
        const bool is_leaf = object == Py_None || leaf_class_.is_of_leaves(type, options_);
        if (!is_leaf || !is_kept_by_deepcopy(object)) return false;
        classes_[1] = std::exchange(classes_[0], type);
        return true;
    }

    const FlattenOptions &options_;
    LeafClass leaf_class_;
    PyTypeObject *classes_[2] = {};  // of the last values
    IdentityTable numbers_;
    Buffer<PyObject *, 16> copies_;  // of what may be met again, by number; null until they are complete
    Buffer<Open, 24> open_;
};

}  // namespace

nb::object copy_known(nb::handle tree, const FlattenOptions &options, bool only_values) {
    if (kFreeThreaded || options.asks()) return nb::object();
    try {
        nb::object made = only_values ? ValuesCopy(options).run(tree) : nb::object();
        if (made.is_valid()) return made;
        const CachedStructure known(tree.ptr(), options.setting());
        BorrowedObjects objects;
        const Structure &structure = known.structure();
        if (known.must_ask() || !look_at_known(structure, tree.ptr(), options, objects)) return nb::object();
        if (structure.nodes[0].is_leaf()) return nb::object();  // which may not be a tree
        for (uint32_t i = 0; only_values && i < structure.num_nodes; ++i)
            if (structure.nodes[i].is_leaf() && !is_kept_by_deepcopy(objects[i])) return nb::object();
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
