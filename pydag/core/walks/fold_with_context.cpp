// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"
#include "structure/paths.h"
#include "types/values.h"
#include "walks/class_functions.h"
#include "walks/fold.h"

#include <unordered_map>

namespace pydag {
namespace {

class ContextFold {
public:
    ContextFold(ClassFunctions &functions, ClassFunctions &down, const Structure &structure, const NodeObjects &objects)
        : functions_(functions),
          down_(down),
          structure_(structure),
          objects_(objects),
          places_(find_places(structure, Which::kAllNodes)),
          anchors_(find_places(structure, Which::kAnchors)) {}

    nb::object run(nb::handle context) {
        try {
            enter(0, number_of(context));
            while (!frames_.empty()) step();
        } catch (...) {
            rethrow_at([&] { return path_text(steps_to(structure_, {position_}).front()); }, "folding");
        }
        return values_.pop_owned();
    }

private:
    // A node whose children are being folded.
    struct Frame {
        uint32_t position, context;
        uint32_t below;          // the context of its children
        uint32_t next, pending;  // the next child, and how many are to come
    };

    void step() {
        interruptible_step();
        Frame &frame = frames_.back();
        if (frame.pending > 0) {
            --frame.pending;
            const uint32_t child = std::exchange(frame.next, places_[frame.next].end.node);
            enter(child, frame.below);
        } else {
            finish(frame.position, frame.context);
            frames_.pop();
        }
    }

    void enter(uint32_t position, uint32_t context) {
        const Node met = structure_.nodes[position];
        if (met.is_alias()) position = anchors_[met.count].begin.node;
        position_ = position;
        if (const auto known = memo_.find(key(position, context)); known != memo_.end())
            return values_.push_borrowed(results_[known->second]);
        const uint32_t count = structure_.nodes[position].count;
        if (count == 0) return finish(position, context);
        frames_.push({position, context, below(position, context), position + 1, count});
    }

    void finish(uint32_t position, uint32_t context) {
        position_ = position;
        PyObject *const object = objects_[position], *const function = functions_.find(object);
        if (!function) functions_.fail_missing(object);
        const nb::object children = values_.take_tuple(values_.size() - structure_.nodes[position].count);
        nb::object value = call(nb::handle(function), nb::handle(object), children, nb::handle(contexts_[context]));
        memo_.emplace(key(position, context), static_cast<uint32_t>(results_.size()));
        results_.push_borrowed(value.ptr());
        values_.push_new(std::move(value));
    }

    // The context of a node's children: that of the node itself, if the mapping has no function for it.
    uint32_t below(uint32_t position, uint32_t context) {
        PyObject *const object = objects_[position], *const function = down_.find(object);
        if (!function) return context;
        return number_of(call(nb::handle(function), nb::handle(object), nb::handle(contexts_[context])));
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

    static uint64_t key(uint32_t position, uint32_t context) { return uint64_t{position} << 32 | context; }

    ClassFunctions &functions_, &down_;
    const Structure &structure_;
    const NodeObjects &objects_;
    const std::vector<Place> places_, anchors_;  // by position; by number
    ValueTable contexts_;
    Buffer<Frame, 24> frames_;
    RefBuffer<96> values_, results_;
    std::unordered_map<uint64_t, uint32_t> memo_;  // (position, context) -> among the results
    uint32_t position_ = 0;
};

}  // namespace

nb::object fold_with_context(nb::handle function, nb::handle tree, nb::handle down, nb::handle context,
                             const FlattenOptions &options) {
    ClassFunctions functions(function, "f"), functions_down(down, "down");
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    parts.remember();
    const Structure structure = parts.structure();
    return ContextFold(functions, functions_down, structure, objects).run(context);
}

}  // namespace pydag
