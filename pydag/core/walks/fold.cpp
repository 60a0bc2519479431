// SPDX-License-Identifier: Apache-2.0
#include "walks/fold.h"

#include "structure/paths.h"
#include "walks/class_functions.h"
#include "walks/post_order.h"

namespace pydag {
namespace {

class Fold {
public:
    Fold(ClassFunctions &functions, const Structure &structure, const NodeObjects &objects)
        : functions_(functions), structure_(structure), objects_(objects), memo_(structure) {}

    nb::object run() {
        try {
            visit_children_first(structure_, *this);
        } catch (...) {
            rethrow_at(structure_, position_, "folding");
        }
        return values_.pop_owned();
    }

    void visit(const VisitedNode &at) {
        position_ = at.position;
        const Node node = structure_.nodes[at.position];
        PyObject *const object = objects_[at.position], *const function = functions_.find(object);
        if (!function) functions_.fail_missing(object);
        const nb::object children = values_.take_tuple(values_.size() - node.count);
        nb::object value = call(nb::handle(function), nb::handle(object), children);
        if (node.is_anchor) memo_.set(at.number, value);
        values_.push_new(std::move(value));
    }
    void visit_alias(uint32_t number) { values_.push_borrowed(memo_[number]); }

private:
    ClassFunctions &functions_;
    const Structure &structure_;
    const NodeObjects &objects_;
    RefBuffer<96> values_;
    AnchorMemo memo_;
    uint32_t position_ = 0;
};

}  // namespace

nb::object fold(nb::handle function, nb::handle tree, const FlattenOptions &options) {
    ClassFunctions functions(function, "f");
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    parts.remember();
    const Structure structure = parts.structure();
    return Fold(functions, structure, objects).run();
}

}  // namespace pydag
