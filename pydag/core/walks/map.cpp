// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/constants.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/tuples.h"
#include "spec/spec.h"
#include "structure/cursor.h"
#include "structure/select.h"
#include "walks/fold_structure.h"

#include <memory>
#include <vector>

namespace pydag {
namespace {

[[noreturn]] void fail_not_callable(nb::handle function, nb::handle tree, Extra extra) {
    const char *const name = extra == Extra::kNone   ? "dag_map"
                             : extra == Extra::kPath ? "dag_map_with_path"
                                                     : "dag_map_with_accessor";
    const std::string advice = PyCallable_Check(tree.ptr()) ? std::string("\n  Swap them: ") + name + "(f, tree)." : "";
    fail(PyExc_TypeError, "%s takes the function first and then the tree, but the first argument can't be called: %U%s",
         name, short_repr(function).ptr(), advice.c_str());
}

// Adds a note if a function failed because it got an object of an unregistered class, with arrays inside.
void add_hint(nb::python_error &error, nb::handle leaf) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_AttributeError)) return;
    const nb::object hint = nb::steal(PyObject_CallOneArg(constants.unopened_hint, leaf.ptr()));
    if (hint.is_valid() && PyUnicode_Check(hint.ptr())) add_note(nb::borrow(error.value()), text_of(hint));
    PyErr_Clear();
}

// A tree and its rests, taken apart: the arguments of the function for each leaf.
class Rows {
public:
    Rows(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select, const FlattenOptions &options,
         Extra extra)
        : function_(function), parts_(tree, options) {
        parts_.remember();
        structure_ = parts_.structure();
        if (extra != Extra::kNone) read_ways(extra);
        if (!select.is_none()) read_selection(select);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rests.ptr()); ++i) {
            rests_.push_back(std::make_unique<Leaves>());
            match_rest(structure_, rests, i, *rests_.back());
        }
        is_plain_ = !ways_ && rests_.empty() && select.is_none();
        if (!PyCallable_Check(function.ptr()) && structure_.num_leaves > 0) [[unlikely]]
            fail_not_callable(function, tree, extra);
    }

    const Structure &structure() const { return structure_; }

    // Returns the function's result for the next leaf; or the leaf itself, if the function isn't called for it.
    nb::object next() {
        const size_t i = next_++;
        PyObject *const *const leaf = parts_.leaves().data() + i;
        try {
            return answer(i, leaf);
        } catch (nb::python_error &error) {
            add_hint(error, *leaf);
            throw;
        }
    }

private:
    nb::object answer(size_t i, PyObject *const *leaf) {
        if (is_plain_) return call_array(function_, leaf, 1);
        if (!selected_.empty() && !selected_[i]) return nb::borrow(*leaf);
        arguments_.resize_down(0);
        if (ways_) arguments_.push(ways_[i]);
        arguments_.push(*leaf);
        for (const auto &rest : rests_) arguments_.push((*rest)[i]);
        return call_array(function_, arguments_.data(), arguments_.size());
    }

    void read_ways(Extra extra) {
        if (extra == Extra::kPath) kept_paths_ = parts_.kept_paths();
        if (kept_paths_.is_valid()) {
            ways_ = &PyTuple_GET_ITEM(kept_paths_.ptr(), 0);
            return;
        }
        (extra == Extra::kPath ? add_paths : add_accessors)(structure_, made_ways_);
        ways_ = made_ways_.data();
    }

    void read_selection(nb::handle select) {
        if (PyType_Check(select.ptr())) return select_class(select);
        spec_ = parts_.take_spec();
        structure_ = spec_of(spec_).structure();
        const nb::object answers = checked(
            PySequence_Tuple(call(select, tuple_of(parts_.leaves().data(), structure_.num_leaves), spec_).ptr()));
        if (static_cast<size_t>(PyTuple_GET_SIZE(answers.ptr())) != structure_.num_leaves)
            fail(PyExc_ValueError, "%zu leaves, and %zd answers for them", size_t{structure_.num_leaves},
                 PyTuple_GET_SIZE(answers.ptr()));
        for (uint32_t i = 0; i < structure_.num_leaves; ++i)
            selected_.push_back(PyTuple_GET_ITEM(answers.ptr(), i) == Py_True);
    }

    void select_class(nb::handle type) {
        for (uint32_t i = 0; i < structure_.num_leaves; ++i)
            selected_.push_back(checked(PyObject_IsInstance(parts_.leaves()[i], type.ptr())) != 0);
        if (std::all_of(selected_.begin(), selected_.end(), [](bool is_it) { return is_it; })) return;
        const nb::object below = leaves_below(structure_, type);
        for (uint32_t i = 0; i < structure_.num_leaves; ++i)
            if (PyList_GET_ITEM(below.ptr(), i) == Py_True) selected_[i] = true;
    }

    nb::handle function_;
    Flattened parts_;
    nb::object spec_;  // owns the structure where there is a selection
    Structure structure_;
    std::vector<bool> selected_;
    std::vector<std::unique_ptr<Leaves>> rests_;
    nb::object kept_paths_;
    Ways made_ways_;                   // not a list: that could be found by its items' referrers, and changed
    PyObject *const *ways_ = nullptr;  // those of either
    bool is_plain_;
    Buffer<PyObject *, 8> arguments_;  // borrowed from the buffers above
    size_t next_ = 0;
};

// The result for this leaf, which must be the next one.
nb::object next_answer(Rows &rows, uint32_t leaf) {
    try {
        return rows.next();
    } catch (...) {
        Cursor at(rows.structure());
        while (!at.node().is_leaf() || at.leaf() < leaf) at.step();
        rethrow_at(rows.structure(), at.position(), "mapping");
    }
}

}  // namespace

nb::object map(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select, const FlattenOptions &options,
               Extra extra) {
    Rows rows(function, tree, rests, select, options, extra);
    const Structure &structure = rows.structure();
    const auto runs_code = [](Node node) { return is_callback(node.kind); };
    if (std::any_of(structure.nodes, structure.nodes + structure.num_nodes, runs_code)) {
        MadeOnce once;
        return fold_structure(structure, "mapping", [&](const VisitedNode &at, Stack &results) {
            const Node node = at.node;
            if (!node.is_leaf()) return build_node(node.kind, at.refs, results, results.size() - node.count, once);
            nb::object answer = rows.next();
            once.puts_none |= answer.is_none();
            return answer;
        });
    }
    // No Python code can observe when the containers are built, so they are built after all calls.
    RefBuffer<96> answers;
    answers.reserve(structure.num_leaves);
    for (uint32_t i = 0; i < structure.num_leaves; ++i) {
        interruptible_step();
        answers.push_reserved(next_answer(rows, i).release().ptr());
    }
    return unflatten(structure, answers.data(), "mapping");
}

void for_each(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select, const FlattenOptions &options,
              Extra extra) {
    Rows rows(function, tree, rests, select, options, extra);
    for (uint32_t i = 0; i < rows.structure().num_leaves; ++i) {
        interruptible_step();
        next_answer(rows, i);
    }
}

}  // namespace pydag
