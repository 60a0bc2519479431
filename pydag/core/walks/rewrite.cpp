// SPDX-License-Identifier: Apache-2.0
#include "walks/rewrite.h"

#include "nodes/build.h"
#include "structure/paths.h"
#include "types/values.h"
#include "walks/class_functions.h"
#include "walks/one_level.h"
#include "walks/post_order.h"

namespace pydag {
namespace {

class Rewrite {
public:
    Rewrite(ClassFunctions &functions, const Structure &structure, const NodeObjects &objects, Namespace &space)
        : functions_(functions), structure_(structure), objects_(objects), space_(space), memo_(structure) {
        anchor_changed_.assign(structure.num_shared, false);
    }

    nb::object run() {
        try {
            visit_children_first(structure_, *this);
        } catch (...) {
            rethrow_at(structure_, position_, "rewriting");
        }
        return values_.pop_owned();
    }

    bool has_called() const { return has_called_; }

    void visit(const VisitedNode &at) {
        position_ = at.position;
        const Node node = structure_.nodes[at.position];
        PyObject *const object = objects_[at.position];
        bool has_changed = false;
        nb::object given = with_new_parts(node, at.refs, object, has_changed);
        nb::object rewritten = given;
        if (PyObject *const function = functions_.find(given.ptr())) {
            has_called_ = true;
            rewritten = call(nb::handle(function), given);
        }
        // A new value that is the same as the given one doesn't replace it.
        if (is_same_value(given, rewritten, &space_)) rewritten = std::move(given);
        else has_changed = !rewritten.is(nb::handle(object));
        if (node.is_anchor) {
            memo_.set(at.number, rewritten);
            anchor_changed_[at.number] = has_changed;
        }
        push(std::move(rewritten), has_changed);
    }
    void visit_alias(uint32_t number) { push(nb::borrow(memo_[number]), anchor_changed_[number]); }

private:
    // The node itself, or, if one of its children has changed, a new one.
    nb::object with_new_parts(Node node, PyObject *const *refs, PyObject *object, bool &has_changed) {
        const size_t base = values_.size() - node.count;
        for (size_t i = base; i < values_.size(); ++i) has_changed |= changed_[i];
        changed_.resize_down(base);
        if (has_changed) return build_node(node.kind, refs, values_, base, once_);
        values_.drop_to(base);
        return nb::borrow(object);
    }

    void push(nb::object value, bool has_changed) {
        values_.push_new(std::move(value));
        changed_.push(has_changed);
    }

    ClassFunctions &functions_;
    const Structure &structure_;
    const NodeObjects &objects_;
    Namespace &space_;
    Stack values_;
    Buffer<bool, 192> changed_;  // beside `values_`: whether each is another one than it was
    AnchorMemo memo_;
    MadeOnce once_;
    std::vector<bool> anchor_changed_;  // by number
    uint32_t position_ = 0;
    bool has_called_ = false;  // the function, at all
};

// Looks for cycles: a function that changes objects in place may have put one into itself. Nodes that only
// Python code can open are not opened a second time for this. And if there was a predicate, nothing is
// searched, since what is in the objects that it kept whole doesn't count.
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

}  // namespace

nb::object rewrite(nb::handle function, nb::handle tree, const FlattenOptions &options) {
    ClassFunctions functions(function, "f");
    nb::object result;
    {
        NodeObjects objects;
        Flattened parts(tree, options, &objects);
        parts.remember();
        const Structure structure = parts.structure();
        Rewrite rewriting(functions, structure, objects, *options.space);
        result = rewriting.run();
        if (!rewriting.has_called()) return result;
    }
    refuse_cycles(result, options);
    return result;
}

}  // namespace pydag
