// SPDX-License-Identifier: Apache-2.0
#include "walks/flatten.h"

#include "base/error.h"
#include "structure/compare.h"
#include "walks/flatten_general.h"
#include "walks/node_answers.h"

#include <algorithm>

namespace pydag {
namespace {

// Makes `builder` a structure like this one, but with other references.
void copy_with(const Structure &structure, const OtherRefs &others, StructureBuilder &builder) {
    std::copy_n(structure.nodes, structure.num_nodes, builder.nodes.extend(structure.num_nodes));
    builder.add_refs(structure.refs, structure.num_refs);
    builder.num_leaves = structure.num_leaves;
    builder.num_shared = structure.num_shared;
    builder.none_is_leaf = structure.none_is_leaf;
    builder.namespace_ = nb::borrow(structure.namespace_);
    for (const auto &[index, ref] : others) builder.refs.replace(index, ref);
}

}  // namespace

Flattened::Flattened(nb::handle tree, const FlattenOptions &options, NodeObjects *objects, NodeAnswers *answers)
    : cached_(tree.ptr(), options.setting()) {
    if (answers) take_apart(tree.ptr(), options, objects, answers);
    else if (cached_.must_ask()) follow_asking(tree.ptr(), options, objects);
    else if (flatten_known(cached_.structure(), tree.ptr(), options, leaves_, objects)) is_cached_ = true;
    else take_apart(tree.ptr(), options, objects, nullptr);
    if (!options.asks() && structure().num_nodes == 1 && structure().nodes[0].is_leaf()) refuse_torch_module(tree);
}

void Flattened::follow_asking(PyObject *tree, const FlattenOptions &options, NodeObjects *objects) {
    NodeAnswers answers;
    if (!flatten_asking(cached_.structure(), tree, options, leaves_, objects, answers))
        return take_apart(tree, options, objects, &answers);
    OtherRefs &others = answers.other_refs;
    is_cached_ = others.empty() || cached_.replace_refs(others);
    if (!is_cached_) copy_with(cached_.structure(), others, builder_);
}

void Flattened::take_apart(PyObject *tree, const FlattenOptions &options, NodeObjects *objects, NodeAnswers *answers) {
    if (!flatten_pure(tree, options, builder_, leaves_, objects))
        GeneralWalk(options, builder_, leaves_, objects, answers).run(tree);
    is_cached_ = is_same(cached_.structure(), builder_.view());
}

nb::object Flattened::take_spec() { return is_cached_ ? cached_.take_spec() : cached_.take_spec(std::move(builder_)); }

void Flattened::remember() {
    if (is_cached_) return;
    cached_.keep(std::move(builder_));
    is_cached_ = true;
}

nb::object shared_objects_of(nb::handle tree, const FlattenOptions &options) {
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    const Structure structure = parts.structure();
    nb::object list = checked(PyList_New(0));
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        interruptible_step();
        if (structure.nodes[i].is_anchor) checked(PyList_Append(list.ptr(), objects[i]));
    }
    return checked(PyTuple_Pack(2, parts.take_spec().ptr(), list.ptr()));
}

}  // namespace pydag
