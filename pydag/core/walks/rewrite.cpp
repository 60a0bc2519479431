// SPDX-License-Identifier: Apache-2.0
#include "nodes/build.h"
#include "types/values.h"
#include "walks/class_functions.h"
#include "walks/fold.h"
#include "walks/fold_structure.h"
#include "walks/one_level.h"

namespace pydag {
namespace {

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
            // A new value that is the same as the given one doesn't replace it.
            return is_same_value(given, result, options.space.get()) ? given : result;
        });
    };
    nb::object result = rewritten();
    if (has_called) refuse_cycles(result, options);
    return result;
}

}  // namespace pydag
