// SPDX-License-Identifier: Apache-2.0
#include "optree_api/specs.h"

#include "structure/namespaces.h"
#include "structure/writer.h"

namespace pydag {

void compose(const Structure &outer, const Structure &inner, StructureBuilder &result) {
    nb::object namespace_ = merge_namespaces(outer, inner);
    if (uint64_t{outer.num_leaves} * inner.num_nodes >= UINT32_MAX) StructureBuilder::fail_too_many_nodes();
    const IndexedStructure source(inner);
    SubtreeCopier copier(source);
    StructureWriter writer(result);
    rewrite(outer, writer, [&](const Cursor &at) {
        if (at.node().is_leaf()) copier.copy(0, writer);
        else writer.add(at.node(), at.refs());
    });
    writer.finish(outer.none_is_leaf, std::move(namespace_));
}

}  // namespace pydag
