// SPDX-License-Identifier: Apache-2.0
#include "optree_api/specs.h"

#include "base/error.h"
#include "nodes/open.h"
#include "structure/compare.h"
#include "structure/writer.h"

namespace pydag {
namespace {

bool is_empty(nb::handle name) { return PyUnicode_GET_LENGTH(name.ptr()) == 0; }

// The class as a message names it: a builtin by its bare name.
nb::object class_text(nb::handle collection, Kind kind) {
    const nb::handle type(reinterpret_cast<PyObject *>(Py_TYPE(collection.ptr())));
    if (has_many_classes(kind)) return short_repr(type);
    return checked(PyObject_GetAttrString(type.ptr(), "__name__"));
}

void check_parts(const Stack &parts, nb::handle collection, Kind kind) {
    for (size_t i = parts.size(); i-- > 0;)
        if (!nb::isinstance<Spec>(parts[i]))
            fail(PyExc_ValueError, "Expected a(n) %U of PyDagSpec(s), got %U.", class_text(collection, kind).ptr(),
                 short_repr(collection).ptr());
}

// The namespace of those parts that have one, which must agree, as their other options must; the empty
// one if none has one.
nb::object common_namespace(const Stack &parts, const FlattenOptions &options, nb::handle given) {
    nb::object found = checked(PyUnicode_FromString(""));
    for (size_t i = parts.size(); i-- > 0;) {
        const Structure &part = spec_of(parts[i]).structure();
        if (part.none_is_leaf != options.none_is_leaf)
            fail(PyExc_ValueError, "Expected treespec(s) with `none_is_leaf=%s`.",
                 options.none_is_leaf ? "True" : "False");
        PyObject *const name = part.namespace_;
        if (!are_compatible(found, name))
            fail(PyExc_ValueError, "Expected treespecs with the same namespace, got %R vs. %R.", found.ptr(), name);
        if (is_empty(found)) found = nb::borrow(name);
    }
    if (!are_compatible(found, given))
        fail(PyExc_ValueError, "Expected treespec(s) with namespace %R, got %R.", given.ptr(), found.ptr());
    return found;
}

// `root`: a structure of the collection alone; `parts`: the specs of its children, the last one first.
nb::object put_together(const Structure &root, const Stack &parts, nb::object namespace_) {
    constexpr const char *kPurpose = "composed into a collection";
    check_registrations(root, namespace_, kPurpose);
    StructureBuilder result;
    StructureWriter writer(result);
    writer.add(root.nodes[0], root.refs);
    for (size_t i = parts.size(); i-- > 0;) {
        const Structure &part = spec_of(parts[i]).structure();
        check_registrations(part, namespace_, kPurpose);
        const IndexedStructure source(part);
        SubtreeCopier(source).copy(0, writer);
    }
    writer.finish(root.none_is_leaf, std::move(namespace_));
    return make_spec(Spec(std::move(result)));
}

}  // namespace

nb::object collect_specs(nb::handle collection, const FlattenOptions &options) {
    const TypeInfo info = find_opened(collection.ptr(), *options.space);
    const nb::object registration = nb::borrow(info.registration);
    if (is_leaf(info.kind) || (collection.is_none() && options.none_is_leaf)) {
        // The stack level of the warning is that of the public function's caller.
        checked(PyErr_WarnEx(PyExc_UserWarning, "PyDagSpec::MakeFromCollection() is called on a leaf.", 2));
        return leaf_spec(options.none_is_leaf, nb::str(""));
    }
    OpenOptions open_options{options.space.get()};
    Stack parts;
    Refs refs;
    const uint32_t count = open_node(collection.ptr(), info, open_options, parts, refs);
    check_parts(parts, collection, info.kind);
    nb::object namespace_ = common_namespace(parts, options, options.space->name());
    const bool uses_namespace = registration.is_valid() || options.space_is_ordered;
    if (uses_namespace && is_empty(namespace_)) namespace_ = nb::borrow(options.space->name());
    const Node node = {info.kind, false, 0, count};
    const Structure root = {
        &node, refs.data(), 1, num_refs(node), 0, 0, options.none_is_leaf, options.space->name().ptr()};
    return put_together(root, parts, std::move(namespace_));
}

}  // namespace pydag
