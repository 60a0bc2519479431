// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "nodes/nodes.h"
#include "structure/indexed_structure.h"
#include "types/values.h"
#include "walks/class_functions.h"
#include "walks/fold_structure.h"
#include "walks/parameter_order.h"

#include <unordered_map>

namespace pydag {
namespace {

class ContextFold {
public:
    ContextFold(ClassFunctions &functions, ClassFunctions &down, const Structure &structure, const NodeObjects &objects)
        : functions_(functions), down_(down), objects_(objects), tree_(structure) {}

    nb::object run(nb::handle context) {
        try {
            pending_.push({0, number_of(context)});
            while (!pending_.empty()) {
                interruptible_step();
                visit(pending_.pop());
            }
        } catch (...) {
            rethrow_at(tree_.structure, position_, "folding");
        }
        return values_.pop_owned();
    }

private:
    // A slot, later the node that it holds, and the context in which the node is folded.
    struct Task {
        uint32_t position, context;
    };

    void visit(Task task) {
        const auto finish = [this](Task complete) { this->finish(complete); };
        task.position = position_ = tree_.resolve(task.position);
        if (const auto known = memo_.find(key(task)); known != memo_.end()) {
            values_.push_borrowed(results_[known->second]);
            return around_.add_closed(finish);
        }
        const uint32_t count = tree_.node(position_).count;
        const uint32_t context = count > 0 ? below(task) : 0;
        tree_.push_slots(task.position, pending_, [=](uint32_t slot) { return Task{slot, context}; });
        around_.add(task, count, finish);
    }

    void finish(Task task) {
        position_ = task.position;
        const nb::handle object = objects_[position_], function = functions_.get(object);
        const Node node = tree_.node(position_);
        const nb::object children =
            order_.arrange(node.kind, tree_.refs(position_), values_.take_tuple(values_.size() - node.count));
        nb::object value = call(function, object, children, nb::handle(contexts_[task.context]));
        memo_.emplace(key(task), static_cast<uint32_t>(results_.size()));
        results_.push_borrowed(value.ptr());
        values_.push_new(std::move(value));
    }

    // The context of a node's children: that of the node itself, if the mapping has no function for it.
    uint32_t below(Task task) {
        PyObject *const object = objects_[task.position], *const function = down_.find(object);
        if (!function) return task.context;
        return number_of(call(nb::handle(function), nb::handle(object), nb::handle(contexts_[task.context])));
    }

    uint32_t number_of(nb::handle context) {
        if (Py_TYPE(context.ptr())->tp_hash == PyObject_HashNotImplemented)
            fail(PyExc_TypeError,
                 "a context must be hashable: an object is folded once for each context. This one isn't: %U\n"
                 "  A tuple or a frozenset may do.",
                 short_repr(context).ptr());
        if (PyObject_Hash(context.ptr()) == -1) nb::raise_python_error();
        return contexts_.number_of(context);
    }

    static uint64_t key(Task task) { return uint64_t{task.position} << 32 | task.context; }

    ClassFunctions &functions_, &down_;
    ParameterOrder order_;
    const NodeObjects &objects_;
    const IndexedStructure tree_;
    ValueTable contexts_;
    Buffer<Task, 48> pending_;  // the slots to come
    Nesting<Task> around_;
    RefBuffer<96> values_, results_;
    std::unordered_map<uint64_t, uint32_t> memo_;  // (position, context) -> among the results
    uint32_t position_ = 0;
};

// Looks for cycles: a function that changes objects in place may have put an object into itself. Nodes that only
// Python code can open are not opened a second time for this. If there was a predicate, nothing is searched, since
// the objects that it kept whole may contain anything.
void refuse_cycles(nb::handle tree, const FlattenOptions &options) {
    if (options.is_leaf.is_valid() || is_leaf(tree, options)) return;
    FlattenOptions reading = options;
    reading.opens_callbacks = false;
    try {
        const Flattened parts(tree, reading);
    } catch (...) {
        rethrow_at("what the function made of it", "going through");
    }
}

[[noreturn]] void fail_none(nb::handle given) {
    fail(PyExc_TypeError,
         "f returned None for %U: a `return` is missing\n"
         "  Return the node to keep it. pydag.dag_replace(tree, part, None) puts None in the place of a part.",
         short_repr(given).ptr());
}

}  // namespace

nb::object fold(nb::handle function, nb::handle tree, const FlattenOptions &options) {
    ClassFunctions functions(function, "f");
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    parts.remember();
    ParameterOrder order;
    return fold_structure(parts.structure(), "folding", [&](const VisitedNode &at, Stack &results) {
        const nb::handle object = objects[at.position], own = functions.get(object);
        return call(own, object,
                    order.arrange(at.node.kind, at.refs, results.take_tuple(results.size() - at.node.count)));
    });
}

nb::object fold_with_context(nb::handle function, nb::handle tree, nb::handle down, nb::handle context,
                             const FlattenOptions &options) {
    ClassFunctions functions(function, "f"), functions_down(down, "down");
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    parts.remember();
    const Structure structure = parts.structure();
    return ContextFold(functions, functions_down, structure, objects).run(context);
}

nb::object rewrite(nb::handle function, nb::handle tree, const FlattenOptions &options) {
    ClassFunctions functions(function, "f");
    bool has_called = false;
    const auto rewritten = [&] {
        NodeObjects objects;
        MadeOnce once;
        Flattened parts(tree, options, &objects);
        parts.remember();
        return fold_structure(parts.structure(), "rewriting", [&](const VisitedNode &at, Stack &results) {
            const size_t base = results.size() - at.node.count;
            nb::object given = nb::borrow(objects[at.position]);
            if (at.keeps_children(objects.data(), results.data() + base)) results.drop_to(base);
            else given = build_node(at.node.kind, at.refs, results, base, once);
            PyObject *const own = functions.find(given.ptr());
            if (!own) return given;
            has_called = true;
            nb::object result = call(nb::handle(own), given);
            if (result.is_none() && !given.is_none()) fail_none(given);
            // A new value that is the same as the given one doesn't replace it.
            return is_same_value(given, result, options.space.get()) ? given : result;
        });
    };
    nb::object result = rewritten();
    if (has_called) refuse_cycles(result, options);
    return result;
}

nb::object traverse(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
                    NodeCall how) {
    nb::object next;  // leaf; null behind the last one
    bool is_fetched = false;
    const auto fetch = [&] {
        next = nb::steal(PyIter_Next(leaves.ptr()));
        if (!next.is_valid() && PyErr_Occurred()) nb::raise_python_error();
        is_fetched = true;
    };
    const auto take_leaf = [&] {
        if (!is_fetched) fetch();
        if (!next.is_valid()) fail(PyExc_ValueError, "Too few leaves for PyDagSpec.");
        nb::object result = leaf_function.is_valid() ? call(leaf_function, next) : next;
        fetch();
        return result;
    };
    MadeOnce once;
    once.puts_none = leaf_function.is_valid();
    return fold_structure(structure, "traversing", [&](const VisitedNode &at, Stack &results) {
        const Node node = at.node;
        const size_t base = results.size() - node.count;
        const auto built = [&] { return build_node(node.kind, at.refs, results, base, once); };
        nb::object result;
        if (node.is_leaf()) result = take_leaf();
        else if (!node_function.is_valid()) result = built();
        else if (how == NodeCall::kBuilt) result = call(node_function, built());
        else
            result = call(node_function, type_of(node.kind, at.refs), node_data(node.kind, at.refs),
                          results.take_tuple(base));
        if (at.position == 0 && !is_fetched) fetch();
        if (at.position == 0 && next.is_valid()) fail(PyExc_ValueError, "Too many leaves for PyDagSpec.");
        return result;
    });
}

}  // namespace pydag
