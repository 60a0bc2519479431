// SPDX-License-Identifier: Apache-2.0
#include "walks/update.h"

#include "nodes/write.h"
#include "structure/paths.h"
#include "structure/shapes.h"
#include "walks/match.h"
#include "walks/write_leaves.h"

namespace pydag {
namespace {

void check_shapes(const Structure &structure, const Leaves &before, const Leaves &after) {
    size_t leaf = 0;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        if (!structure.nodes[i].is_leaf()) continue;
        const nb::object one = nb::borrow(before[leaf]), other = nb::borrow(after[leaf]);
        ++leaf;
        if (!differ_in_shape(one, other)) continue;
        fail(PyExc_ValueError,
             "an update writes arrays of the shapes that are there\n  %s: %U\n  source: %U\n"
             "  Assign an array of another shape to the attribute or item itself.",
             path_of(structure, i).c_str(), short_repr(one).ptr(), short_repr(other).ptr());
    }
}

}  // namespace

void update(nb::handle target, nb::handle source, nb::handle writers, const FlattenOptions &options) {
    Flattened parts(target, options);
    const nb::object spec = parts.take_spec();
    const Structure &structure = spec_of(spec).structure();
    const Kind root = structure.nodes[0].kind;
    if (!is_writable(root, structure.refs) && !is_callback(root))
        fail(PyExc_TypeError,
             "a %s can't be updated in place: the root must be a container that can be changed, got %U.",
             traits(root).name, short_repr(target).ptr());
    Leaves leaves;
    match(structure, source.ptr(), leaves);
    check_shapes(structure, parts.leaves(), leaves);
    write_leaves(target,
                 {.structure = structure, .leaves = leaves.data(), .space = *options.space, .writers = writers});
}

}  // namespace pydag
