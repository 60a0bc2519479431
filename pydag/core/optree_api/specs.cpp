// SPDX-License-Identifier: Apache-2.0
#include "optree_api/specs.h"

#include "structure/compare.h"
#include "structure/writer.h"

namespace pydag {
namespace {

nb::object slot_spec(SubtreeCopier &copier, uint32_t slot) {
    StructureBuilder result;
    copier.copy(slot, result);
    return make_spec(Spec(std::move(result)));
}

}  // namespace

nb::object child_spec(const Structure &structure, uint32_t index) {
    const IndexedStructure source(structure);
    SubtreeCopier copier(source);
    uint32_t slot = 1;
    while (index-- > 0) slot = source.behind(slot);
    return slot_spec(copier, slot);
}

nb::object children_specs(const Structure &structure) {
    const IndexedStructure source(structure);
    SubtreeCopier copier(source);
    std::vector<nb::object> known(source.anchors.size());  // by the number of the anchor
    nb::object leaf, list = checked(PyList_New(0));
    source.for_each_slot(0, [&](uint32_t slot) {
        const uint32_t position = source.resolve(slot);
        const Node node = source.node(position);
        nb::object *const same = node.is_anchor ? &known[source.number(position)] : node.is_leaf() ? &leaf : nullptr;
        nb::object spec = same ? *same : nb::object();
        if (!spec.is_valid()) spec = slot_spec(copier, slot);
        if (same) *same = spec;
        checked(PyList_Append(list.ptr(), spec.ptr()));
    });
    return list;
}

nb::object leaf_spec(bool none_is_leaf, nb::handle namespace_) {
    return one_level_spec({Kind::kLeaf, false, 0, 0}, nullptr, none_is_leaf, namespace_);
}

nb::object one_level_spec(Node node, PyObject *const *refs, bool none_is_leaf, nb::handle namespace_) {
    StructureBuilder result;
    StructureWriter writer(result);
    writer.add(node, refs);
    for (uint32_t i = 0; i < node.count; ++i) writer.add_leaf();
    writer.finish(none_is_leaf, nb::borrow(namespace_));
    return make_spec(Spec(std::move(result)));
}

bool is_one_level(const Structure &structure) {
    const Node root = structure.nodes[0];
    if (root.is_leaf() || structure.num_nodes != root.count + 1) return false;
    for (uint32_t i = 1; i < structure.num_nodes; ++i)
        if (!structure.nodes[i].is_leaf() && !structure.nodes[i].is_alias()) return false;
    return true;
}

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
