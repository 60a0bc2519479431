// SPDX-License-Identifier: Apache-2.0
//
// The methods that specs share with optree's and that return other specs or go through a spec; and the functions that
// make specs of specs.
#include "base/error.h"
#include "bind/arguments.h"
#include "bind/bind.h"
#include "bind/operation.h"
#include "optree_api/specs.h"
#include "structure/paths.h"
#include "structure/prefix.h"
#include "walks/walks.h"

namespace pydag {
namespace {

const Structure &structure_in(nb::handle self) { return spec_of(self).structure(); }

// An index among the root's slots; a negative one counts from the end.
uint32_t slot_argument(const Structure &structure, nb::handle index, const char *method) {
    const auto count = static_cast<Py_ssize_t>(num_children(structure.nodes[0]));
    const Py_ssize_t given = index_argument(index);
    if (given < -count || given >= count) fail(PyExc_IndexError, "PyDagSpec::%s() index out of range.", method);
    return static_cast<uint32_t>(given < 0 ? given + count : given);
}

nb::object child(nb::handle self, nb::handle index) {
    const Structure &structure = structure_in(self);
    return child_spec(structure, slot_argument(structure, index, "Child"));
}

nb::object entry(nb::handle self, nb::handle index) {
    const Structure &structure = structure_in(self);
    return entry_of(structure.nodes[0].kind, structure.refs, slot_argument(structure, index, "Entry"));
}

nb::object children(nb::handle self) { return children_specs(structure_in(self)); }

nb::object one_level(nb::handle self) {
    const Structure &structure = structure_in(self);
    if (structure.nodes[0].is_leaf()) return nb::none();
    return one_level_spec(structure.nodes[0], structure.refs, structure.none_is_leaf, structure.namespace_);
}

template <void (*combine)(const Structure &, const Structure &, StructureBuilder &)>
nb::object combined(nb::handle self, nb::handle other) {
    StructureBuilder result;
    combine(structure_in(self), spec_argument(other), result);
    return make_spec(Spec(std::move(result)));
}

template <NodeCall how>
nb::object traversed(nb::handle self, nb::handle leaves, nb::handle f_node, nb::handle f_leaf) {
    const nb::handle node_function = function_argument(f_node), leaf_function = function_argument(f_leaf);
    return traverse(structure_in(self), iterator_argument(leaves), node_function, leaf_function, how);
}

nb::object transformed(nb::handle self, nb::handle f_node, nb::handle f_leaf) {
    return transform(spec_of(self), function_argument(f_node), function_argument(f_leaf));
}

bool is_prefix_of(nb::handle self, nb::handle other, nb::handle strict) {
    return is_prefix(structure_in(self), spec_argument(other), flag_argument(strict));
}
bool is_suffix_of(nb::handle self, nb::handle other, nb::handle strict) {
    return is_prefix(spec_argument(other), structure_in(self), flag_argument(strict));
}

[[noreturn]] void fail_to_construct(nb::handle, const nb::args &, const nb::kwargs &) {
    fail(PyExc_TypeError, "pydag.PyDagSpec: No constructor defined!");
}

nb::object match_at(const Structure &structure, nb::handle tree, nb::handle roots) {
    Leaves found;
    match(structure, tree.ptr(), found, ClassesOf::kAnyTime, Roots(roots));
    return found.take_list();
}

// As `flatten_up_to`, for several trees.
nb::object match_rests(const Structure &structure, nb::handle rests) {
    const nb::object trees = checked(PySequence_Tuple(rests.ptr()));
    nb::list all;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(trees.ptr()); ++i) {
        Leaves found;
        match_rest(structure, trees, i, found, ClassesOf::kAnyTime);
        all.append(found.take_list());
    }
    return all;
}

nb::object leaf_spec_in(const FlattenOptions &options) { return leaf_spec(options.none_is_leaf, nb::str("")); }

const Operation operations[] = {
    operation_of<match_at>("match_at"),
    operation_of<match_rests>("match_rests"),
    operation_of<leaf_spec_in>("leaf_spec"),
    operation_of<collect_specs>("collect_specs"),
};

}  // namespace

void bind_spec_methods(nb::module_ &module) {
    const auto given = nb::arg().none();
    const auto optional = [](const char *name) { return nb::arg(name).none() = nb::none(); };
    nb::borrow<nb::class_<Spec>>(nb::type<Spec>())
        .def("__init__", fail_to_construct)
        .def("children", children, nb::sig("def children(self, /) -> list[PyDagSpec]"),
             "The specs of the root's children, each without its sharing with the others.")
        .def("child", child, given, nb::sig("def child(self, index: SupportsInt | SupportsIndex, /) -> PyDagSpec"),
             "The spec of one of the root's children; a negative index counts from the end.")
        .def("entry", entry, given, nb::sig("def entry(self, index: SupportsInt | SupportsIndex, /) -> Any"),
             "The entry of one of the root's slots; a negative index counts from the end.")
        .def("one_level", one_level, nb::sig("def one_level(self, /) -> PyDagSpec | None"),
             "The root with an unshared leaf in each of its slots; None for a leaf.")
        .def(
            "is_one_level", [](nb::handle self) { return is_one_level(structure_in(self)); },
            nb::sig("def is_one_level(self, /) -> bool"), "Whether the root is a node and all its children are leaves.")
        .def("is_prefix", is_prefix_of, given, nb::kw_only(), nb::arg("strict").none() = false,
             nb::sig("def is_prefix(self, other: PyDagSpec, /, *, strict: bool = False) -> bool"),
             "Whether `other` is this spec with its leaves replaced by structures.\n\nAn object of this spec must be "
             "one object in `other`, which may share more. With `strict=True`, `other` must share more, or have a node "
             "where this spec has a leaf.")
        .def("is_suffix", is_suffix_of, given, nb::kw_only(), nb::arg("strict").none() = false,
             nb::sig("def is_suffix(self, other: PyDagSpec, /, *, strict: bool = False) -> bool"),
             "Whether `other` is a prefix of this spec.")
        .def("compose", combined<compose>, given, nb::sig("def compose(self, inner: PyDagSpec, /) -> PyDagSpec"),
             "This spec with each leaf replaced by `inner`. A shared leaf is replaced by one shared object.")
        .def("broadcast_to_common_suffix", combined<common_suffix>, given,
             nb::sig("def broadcast_to_common_suffix(self, other: PyDagSpec, /) -> PyDagSpec"),
             "This spec with its leaves replaced by what `other` has at their places.\n\nThe result has the sharing of "
             "this spec, and within such a place that of `other`. A shared leaf must get the same structure at all of "
             "its paths.")
        .def("transform", transformed, optional("f_node"), optional("f_leaf"),
             nb::sig("def transform(self, /, f_node: Callable[[PyDagSpec], PyDagSpec] | None = None, "
                     "f_leaf: Callable[[PyDagSpec], PyDagSpec] | None = None) -> PyDagSpec"),
             "The spec with other nodes and leaves.\n\n`f_node` is called once for each distinct node, after "
             "everything below it, with a spec of the node alone, and returns a spec with as many slots. `f_leaf` is "
             "called once for each distinct leaf, and returns any spec. One object remains one object, unless a tuple "
             "replaces it: then the parts of the tuple are shared.")
        .def("traverse", traversed<NodeCall::kBuilt>, given, optional("f_node"), optional("f_leaf"),
             nb::sig("def traverse(self, leaves: Iterable[Any], /, f_node: Callable[[Any], Any] | None = None, "
                     "f_leaf: Callable[[Any], Any] | None = None) -> Any"),
             "From the leaves up: `f_leaf(leaf)` is called once for each distinct leaf, and `f_node(node)` once for "
             "each distinct node, which is built from the results for its children.\n\nThe result for a shared object "
             "is used at all of its places.")
        .def("walk", traversed<NodeCall::kParts>, given, optional("f_node"), optional("f_leaf"),
             nb::sig("def walk(self, leaves: Iterable[Any], /, "
                     "f_node: Callable[[type, Any, tuple[Any, ...]], Any] | None = None, "
                     "f_leaf: Callable[[Any], Any] | None = None) -> Any"),
             "Like `traverse`, with `f_node(type, data, children)`, so that no node is built.")
        .def(
            "to_treespec", [](nb::handle self) { return to_treespec(structure_in(self)); },
            nb::sig("def to_treespec(self, /) -> PyTreeSpec"),
            "optree's `PyTreeSpec` of the unfolded tree: every path is written out, and nothing is shared.")
        .def("_brief_repr", [](nb::handle self) { return text_object(spec_of(self).text(SpecText::kBrief)); });
    add_operations(module, operations);
}

}  // namespace pydag
