// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/gc_pause.h"
#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/paths.h"

namespace pydag {
namespace {

[[noreturn]] void fail_too_few(uint32_t expected, Py_ssize_t count) {
    fail(PyExc_ValueError, "Too few leaves for PyDagSpec; expected: %zu, got: %zd.", size_t{expected}, count);
}

// `count` is -1, with a Python error set, if the number of leaves isn't known.
[[noreturn]] void fail_too_many(uint32_t expected, Py_ssize_t count) {
    PyErr_Clear();
    const std::string got = count < 0 ? "" : ", got: " + std::to_string(count);
    fail(PyExc_ValueError, "Too many leaves for PyDagSpec; expected: %zu%s.", size_t{expected}, got.c_str());
}

class Builder {
public:
    // The address and the number of the leaves are read each time: an unflatten function may change a list of them.
    Builder(const Structure &structure, PyObject **const &leaves, const Py_ssize_t &num_leaves)
        : structure_(structure), leaves_(leaves), num_leaves_(num_leaves) {
        for (uint32_t i = 0; i < structure.num_shared; ++i) memo_.push_borrowed(Py_None);
        values_.reserve(structure.num_nodes);
    }

    nb::object run() {
        Nesting<Item> around;
        uint32_t num_anchors = 0;
        PyObject *const *refs = structure_.refs;
        const auto close = [this](const Item &item) { build(item); };
        for (node_ = 0; node_ < structure_.num_nodes; ++node_) {
            interruptible_step(pause_);
            const Node node = structure_.nodes[node_];
            if (node.is_leaf()) {
                values_.push_reserved(incref(next_leaf()));
                if (node.is_anchor) [[unlikely]]
                    memorize(num_anchors++);
            } else if (node.is_none()) {
                values_.push_reserved(incref(Py_None));
            } else if (node.is_alias()) {
                values_.push_reserved(incref(memo_[node.count]));
            } else {
                around.add({refs, node_, node.is_anchor ? num_anchors++ : 0}, node.count, close);
                refs += num_refs(node);
                continue;
            }
            around.add_closed(close);
        }
        return values_.pop_owned();
    }

    // Returns the position for an error message. Python code may run from now on.
    uint32_t fail() {
        pause_.end();
        return node_;
    }

private:
    struct Item {
        PyObject *const *refs;
        uint32_t position, number;
    };

    // Builds a node whose children are the last values.
    void build(const Item &item) {
        const Node node = structure_.nodes[item.position];
        if (!is_built_by_core(node.kind, item.refs)) [[unlikely]]
            pause_.end();
        const uint32_t position = std::exchange(node_, item.position);
        const size_t base = values_.size() - node.count;
        values_.push_reserved(build_node(node.kind, item.refs, values_, base, once_).release().ptr());
        node_ = position;
        if (node.is_anchor) [[unlikely]]
            memorize(item.number);
    }

    void memorize(uint32_t number) { memo_.replace(number, nb::borrow(values_.back())); }

    PyObject *next_leaf() {
        if (num_taken_ >= num_leaves_) [[unlikely]]
            fail_too_few(structure_.num_leaves, num_taken_);
        PyObject *const leaf = leaves_[num_taken_++];
        if (!leaf) [[unlikely]]
            fail_unfilled();
        once_.puts_none |= leaf == Py_None;
        return leaf;
    }

    const Structure &structure_;
    PyObject **const &leaves_;
    const Py_ssize_t &num_leaves_;
    Py_ssize_t num_taken_ = 0;
    Stack values_;
    RefBuffer<16> memo_;
    uint32_t node_ = 0;
    MadeOnce once_;
    BuildPause pause_;
};

nb::object build(const Structure &structure, PyObject **const &leaves, const Py_ssize_t &num_leaves,
                 const char *doing) {
    Builder builder(structure, leaves, num_leaves);
    try {
        return builder.run();
    } catch (...) {
        const uint32_t node = builder.fail();
        rethrow_at(structure, node, doing);
    }
}

// Reads an iterable to its end, or one leaf too far: it may be endless.
void read_leaves(nb::handle leaves, uint32_t expected, RefBuffer<96> &read) {
    if (!Py_TYPE(leaves.ptr())->tp_iter && !PySequence_Check(leaves.ptr()))
        fail(PyExc_TypeError, "unflatten(): the leaves must be an iterable, got %U.", short_repr(leaves).ptr());
    const nb::object iterator = checked(PyObject_GetIter(leaves.ptr()));
    while (PyObject *const leaf = PyIter_Next(iterator.ptr())) {
        read.push_new(nb::steal(leaf));
        interruptible_step();
        if (read.size() > expected) fail_too_many(expected, PyObject_Size(leaves.ptr()));
    }
    if (PyErr_Occurred()) nb::raise_python_error();
    if (read.size() < expected) fail_too_few(expected, static_cast<Py_ssize_t>(read.size()));
}

}  // namespace

nb::object unflatten(const Structure &structure, PyObject *const *leaves, const char *doing) {
    return build(structure, const_cast<PyObject **>(leaves), structure.num_leaves, doing);
}

nb::object unflatten(const Structure &structure, nb::handle leaves) {
    if (!PyList_CheckExact(leaves.ptr()) && !PyTuple_CheckExact(leaves.ptr())) {
        RefBuffer<96> read;
        read_leaves(leaves, structure.num_leaves, read);
        return unflatten(structure, read.data());
    }
    // Another thread may change a list.
    const nb::object owned =
        kFreeThreaded && PyList_Check(leaves.ptr()) ? checked(PyList_AsTuple(leaves.ptr())) : nb::borrow(leaves);
    const Py_ssize_t &count = reinterpret_cast<PyVarObject *>(owned.ptr())->ob_size;
    if (static_cast<size_t>(count) < structure.num_leaves) fail_too_few(structure.num_leaves, count);
    if (static_cast<size_t>(count) > structure.num_leaves) fail_too_many(structure.num_leaves, count);
    PyObject **items = PySequence_Fast_ITEMS(owned.ptr());
    const bool is_list = PyList_Check(owned.ptr());
    return build(structure, is_list ? reinterpret_cast<PyListObject *>(owned.ptr())->ob_item : items, count,
                 "unflattening");
}

}  // namespace pydag
