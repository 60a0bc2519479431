// SPDX-License-Identifier: Apache-2.0
#include "walks/update.h"

#include "nodes/write.h"
#include "walks/match.h"
#include "walks/write_leaves.h"

namespace pydag {

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
    write_leaves(target,
                 {.structure = structure, .leaves = leaves.data(), .space = *options.space, .writers = writers});
}

}  // namespace pydag
