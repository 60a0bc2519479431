// SPDX-License-Identifier: Apache-2.0
#include "unflatten.h"

namespace pydag {
namespace {

// A node whose children are being built.
struct Frame {
    PyObject *const *refs;
    size_t base;      // the number of values below its first child
    size_t complete;  // the number of values when its last child is built
    uint32_t node;
    uint32_t number;  // of an anchor
};

// `Source` is a LeafSource; known by its own type where that saves a call for each leaf.
template <class Source>
class Builder {
public:
    Builder(const Structure &structure, Source &leaves) : structure_(structure), leaves_(leaves) {
        PyObject **const slots = memo_.extend(structure.num_shared);
        for (uint32_t i = 0; i < structure.num_shared; ++i) slots[i] = incref(Py_None);
    }

    nb::object run() {
        PyObject *const *refs = structure_.refs;
        for (node_ = 0; node_ < structure_.num_nodes; ++node_) {
            const Node node = structure_.nodes[node_];
            if (node.kind == Kind::kLeaf) {
                values_.push_new(leaves_.next());
                if (node.is_anchor) memorize(num_anchors_++);
            } else if (node.kind == Kind::kNone) {
                values_.push_borrowed(Py_None);
            } else if (node.kind == Kind::kAlias) {
                values_.push_borrowed(memo_[node.count]);
            } else {
                const uint32_t number = node.is_anchor ? num_anchors_++ : 0;
                frames_.push({refs, values_.size(), values_.size() + node.count, node_, number});
                refs += num_refs(node);
            }
            while (!frames_.empty() && frames_.back().complete == values_.size()) build_last();
        }
        return values_.pop_owned();
    }

    uint32_t failed_node() const { return node_; }

private:
    // Builds the innermost node whose children are all built.
    void build_last() {
        const Frame frame = frames_.back();
        const Node node = structure_.nodes[frame.node];
        const uint32_t position = std::exchange(node_, frame.node);
        values_.push_new(build_node(node.kind, frame.refs, values_, frame.base));
        node_ = position;
        frames_.pop();
        if (node.is_anchor) memorize(frame.number);
    }

    void memorize(uint32_t number) { nb::steal(std::exchange(memo_[number], incref(values_.back()))).reset(); }

    const Structure &structure_;
    Source &leaves_;
    Stack values_;
    Buffer<Frame, 24> frames_;
    RefBuffer<16> memo_;
    uint32_t node_ = 0, num_anchors_ = 0;
};

template <class Source>
nb::object build(const Structure &structure, Source &leaves, const char *doing) {
    Builder<Source> builder(structure, leaves);
    try {
        return builder.run();
    } catch (...) {
        rethrow_at(path_text(steps_to(structure, {builder.failed_node()}).front()), doing);
    }
}

// Leaves that stand in a list or tuple.
class ItemSource final : public LeafSource {
public:
    ItemSource(nb::handle items, uint32_t expected) : items_(items), expected_(expected) {}

    // The size is read each time: an unflatten function may change the list.
    nb::object next() override {
        if (next_ >= PySequence_Fast_GET_SIZE(items_.ptr())) [[unlikely]]
            fail(PyExc_ValueError, "Too few leaves for PyDagSpec; expected: %zu, got: %zd.", size_t{expected_}, next_);
        return nb::borrow(PySequence_Fast_GET_ITEM(items_.ptr(), next_++));
    }

private:
    nb::handle items_;
    uint32_t expected_;
    Py_ssize_t next_ = 0;
};

}  // namespace

nb::object unflatten(const Structure &structure, LeafSource &leaves, const char *doing) {
    return build(structure, leaves, doing);
}

nb::object unflatten(const Structure &structure, nb::handle leaves) {
    if (!Py_TYPE(leaves.ptr())->tp_iter && !PySequence_Check(leaves.ptr()))
        fail(PyExc_TypeError, "unflatten(): the leaves must be an iterable, got %U.", short_repr(leaves).ptr());
    const nb::object items = checked(PySequence_Fast(leaves.ptr(), "the leaves must be an iterable"));
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
    if (static_cast<size_t>(count) < structure.num_leaves)
        fail(PyExc_ValueError, "Too few leaves for PyDagSpec; expected: %zu, got: %zd.", size_t{structure.num_leaves},
             count);
    if (static_cast<size_t>(count) > structure.num_leaves)
        fail(PyExc_ValueError, "Too many leaves for PyDagSpec; expected: %zu, got: %zd.", size_t{structure.num_leaves},
             count);
    ItemSource source(items, structure.num_leaves);
    return build(structure, source, "unflattening");
}

}  // namespace pydag
