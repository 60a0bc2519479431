// SPDX-License-Identifier: Apache-2.0
#include "walks/unflatten.h"

#include "base/gc_pause.h"
#include "base/interrupt.h"

namespace pydag {
namespace {

struct NoPause {
    void end() {}
    template <class Function>
    void while_ended(Function function) {
        function();
    }
};

// A node whose children are being built. These frames are no `Nesting` (cursor.h): with one, unflattening took 1.3 %
// more instructions.
struct Frame {
    PyObject *const *refs;
    uint32_t node;
    uint32_t number;   // of an anchor
    uint32_t pending;  // how many children the node around it waits for, this one included
};

// `Source` is a LeafSource; known by its own type where that saves a call for each leaf, and where
// reading a leaf runs no Python code.
template <class Source>
class Builder {
public:
    Builder(const Structure &structure, Source &leaves) : structure_(structure), leaves_(leaves) {
        PyObject **const slots = memo_.extend(structure.num_shared);
        for (uint32_t i = 0; i < structure.num_shared; ++i) slots[i] = incref(Py_None);
        values_.reserve(structure.num_nodes);
    }

    nb::object run() {
        PyObject *const *refs = structure_.refs;
        uint32_t pending = 1;  // how many children the innermost open node waits for
        for (node_ = 0; node_ < structure_.num_nodes; ++node_) {
            interruptible_step(pause_);
            const Node node = structure_.nodes[node_];
            if (node.is_leaf()) {
                values_.push_reserved(leaves_.next().release().ptr());
                if (node.is_anchor) [[unlikely]]
                    memorize(num_anchors_++);
            } else if (node.is_none()) {
                values_.push_reserved(incref(Py_None));
            } else if (node.is_alias()) {
                values_.push_reserved(incref(memo_[node.count]));
            } else {
                const Frame frame = {refs, node_, node.is_anchor ? num_anchors_++ : 0, pending};
                refs += num_refs(node);
                if (node.count > 0) {
                    frames_.push(frame);
                    pending = node.count;
                    continue;
                }
                build(node, frame);
            }
            while (--pending == 0 && !frames_.empty()) pending = build_last();
        }
        return values_.pop_owned();
    }

    // For the error message, which Python code makes.
    uint32_t fail() {
        pause_.end();
        return node_;
    }

private:
    // Builds a node whose children are the last values.
    void build(Node node, const Frame &frame) {
        if (!is_built_by_core(node.kind, frame.refs)) [[unlikely]]
            pause_.end();
        const size_t base = values_.size() - node.count;
        values_.push_reserved(build_node(node.kind, frame.refs, values_, base, once_).release().ptr());
        if (node.is_anchor) [[unlikely]]
            memorize(frame.number);
    }
    // Builds the innermost open node. Returns what the node around it waits for.
    uint32_t build_last() {
        const Frame frame = frames_.pop();
        const uint32_t position = std::exchange(node_, frame.node);
        build(structure_.nodes[frame.node], frame);
        node_ = position;
        return frame.pending;
    }

    void memorize(uint32_t number) { memo_.replace(number, nb::borrow(values_.back())); }

    const Structure &structure_;
    Source &leaves_;
    Stack values_;
    Buffer<Frame, 24> frames_;
    RefBuffer<16> memo_;
    uint32_t node_ = 0, num_anchors_ = 0;
    MadeOnce once_;
    std::conditional_t<std::is_same_v<Source, LeafSource>, NoPause, BuildPause> pause_;
};

template <class Source>
nb::object build(const Structure &structure, Source &leaves, const char *doing) {
    Builder<Source> builder(structure, leaves);
    try {
        return builder.run();
    } catch (...) {
        const uint32_t node = builder.fail();
        rethrow_at(structure, node, doing);
    }
}

[[noreturn]] void fail_too_few(uint32_t expected, Py_ssize_t count) {
    fail(PyExc_ValueError, "Too few leaves for PyDagSpec; expected: %zu, got: %zd.", size_t{expected}, count);
}

// `count` is -1, with a Python error set, if the number of leaves isn't known.
[[noreturn]] void fail_too_many(uint32_t expected, Py_ssize_t count) {
    PyErr_Clear();
    const std::string got = count < 0 ? "" : ", got: " + std::to_string(count);
    fail(PyExc_ValueError, "Too many leaves for PyDagSpec; expected: %zu%s.", size_t{expected}, got.c_str());
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

// Leaves that stand in a list or tuple.
class ItemSource final : public LeafSource {
public:
    ItemSource(nb::handle items, uint32_t expected)
        : list_(PyList_Check(items.ptr()) ? items.ptr() : nullptr),
          size_(reinterpret_cast<PyVarObject *>(items.ptr())->ob_size),
          tuple_items_(PyTuple_Check(items.ptr()) ? &PyTuple_GET_ITEM(items.ptr(), 0) : nullptr),
          items_(tuple_items_ ? tuple_items_ : reinterpret_cast<PyListObject *>(items.ptr())->ob_item),
          expected_(expected) {}

    // The size and the address of the items are read each time: an unflatten function may change the list.
    nb::object next() override {
        if (next_ >= load_shared(size_)) [[unlikely]]
            fail_too_few(expected_, next_);
        nb::object leaf = item(next_++);
        if (!leaf.is_valid()) [[unlikely]]
            fail_unfilled();
        return leaf;
    }

private:
    nb::object item(Py_ssize_t i) {
#ifdef Py_GIL_DISABLED
        if (list_) {
            nb::object found = nb::steal(PyList_GetItemRef(list_, i));
            if (!found.is_valid()) PyErr_Clear();  // another thread has made it shorter
            return found;
        }
#endif
        return nb::borrow(items_[i]);
    }

    PyObject *const list_;  // null: a tuple
    const Py_ssize_t &size_;
    PyObject **tuple_items_;
    PyObject **const &items_;
    uint32_t expected_;
    Py_ssize_t next_ = 0;
};

// Leaves that nobody else can change.
class ArraySource final : public LeafSource {
public:
    explicit ArraySource(PyObject *const *leaves) : leaves_(leaves) {}
    nb::object next() override { return nb::borrow(*leaves_++); }

private:
    PyObject *const *leaves_;
};

}  // namespace

nb::object unflatten(const Structure &structure, PyObject *const *leaves, const char *doing) {
    ArraySource source(leaves);
    return build(structure, source, doing);
}

nb::object unflatten(const Structure &structure, LeafSource &leaves, const char *doing) {
    return build(structure, leaves, doing);
}

nb::object unflatten(const Structure &structure, nb::handle leaves) {
    if (!PyList_CheckExact(leaves.ptr()) && !PyTuple_CheckExact(leaves.ptr())) {
        RefBuffer<96> read;
        read_leaves(leaves, structure.num_leaves, read);
        return unflatten(structure, read.data());
    }
    const Py_ssize_t count = Py_SIZE(leaves.ptr());
    if (static_cast<size_t>(count) < structure.num_leaves) fail_too_few(structure.num_leaves, count);
    if (static_cast<size_t>(count) > structure.num_leaves) fail_too_many(structure.num_leaves, count);
    ItemSource source(leaves, structure.num_leaves);
    return build(structure, source, "unflattening");
}

}  // namespace pydag
