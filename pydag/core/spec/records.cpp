// SPDX-License-Identifier: Apache-2.0
#include "spec/records.h"

#include "base/interrupt.h"
#include "base/stack_room.h"
#include "spec/encoded_refs.h"
#include "spec/node_decoder.h"
#include "spec/spec.h"
#include "structure/listing.h"
#include "types/registry.h"

namespace pydag {
namespace {

Kind find_kind(nb::handle name) {
    PyObject **const end = kind_names + kNumKinds, **found = std::find(kind_names, end, name.ptr());
    if (found == end) {  // it isn't interned
        require(PyUnicode_CheckExact(name.ptr()), "the kind must be a string");
        found = std::find_if(kind_names, end, [=](PyObject *known) { return !PyUnicode_Compare(known, name.ptr()); });
    }
    if (found == end) throw Malformed("unknown kind " + text_of(short_repr(name)));
    return static_cast<Kind>(found - kind_names);
}

nb::object number(size_t value) { return checked(PyLong_FromSize_t(value)); }

size_t read_number(nb::handle object, size_t most, const char *why) {
    require(PyLong_CheckExact(object.ptr()), why);
    const size_t value = PyLong_AsSize_t(object.ptr());
    const bool is_out_of_range = PyErr_Occurred() != nullptr;
    PyErr_Clear();
    require(!is_out_of_range && value <= most, why);
    return value;
}

// The rows in a tuple, which the caller owns.
class RowNodes {
public:
    explicit RowNodes(nb::handle rows) : rows_(rows) {}

    size_t size() const { return static_cast<size_t>(PyTuple_GET_SIZE(rows_.ptr())); }
    Node read(size_t i, size_t *indices) {
        const nb::handle row(PyTuple_GET_ITEM(rows_.ptr(), static_cast<Py_ssize_t>(i)));
        require(is_tuple(row) && PyTuple_GET_SIZE(row.ptr()) >= 3, "expected a tuple (kind, is_anchor, count, ...)");
        PyObject *const *const fields = &PyTuple_GET_ITEM(row.ptr(), 0);
        const Kind kind = find_kind(fields[0]);
        require(PyBool_Check(fields[1]), "is_anchor must be a bool");
        const size_t count =
            read_number(fields[2], UINT32_MAX - 1, "the number of children, or of an anchor, is out of range");
        const auto given = static_cast<size_t>(PyTuple_GET_SIZE(row.ptr())) - 3;
        if (given != num_refs(kind))
            throw Malformed("expected " + std::to_string(num_refs(kind)) + " references, got " + std::to_string(given));
        for (size_t ref = 0; ref < given; ++ref)
            indices[ref] = read_number(fields[3 + ref], SIZE_MAX, "a reference must be an index of refs");
        return {kind, fields[1] == Py_True, 0, static_cast<uint32_t>(count)};
    }

private:
    nb::handle rows_;
};

void require_tuple(const char *name, nb::handle given) {
    if (!is_tuple(given)) fail(PyExc_TypeError, "%s: expected a tuple", name);
}

}  // namespace

nb::object nodes_of(const Structure &structure) {
    const WrittenRefs written(structure);
    RefBuffer<96> rows;
    rows.reserve(structure.num_nodes);
    size_t next = 0;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        interruptible_step();
        const Node node = structure.nodes[i];
        RefBuffer<3 + kMostRefs> row;
        row.push_borrowed(kind_name(node.kind));
        row.push_borrowed(node.is_anchor ? Py_True : Py_False);
        row.push_new(number(node.count));
        for (uint32_t ref = 0; ref < num_refs(node); ++ref) row.push_new(number(written.indices[next++]));
        rows.push_new(row.take_tuple());
    }
    return tuple_of(rows.take_tuple(), written.refs);
}

nb::object spec_from_nodes(bool none_is_leaf, nb::handle namespace_, nb::handle rows, nb::handle refs) {
    require_stack_room();
    require_tuple("rows", rows);
    require_tuple("refs", refs);
    StructureBuilder builder;
    builder.none_is_leaf = none_is_leaf;
    require(PyUnicode_CheckExact(namespace_.ptr()), "namespace: expected a string");
    namespace_text(namespace_);  // checks it
    builder.namespace_ = nb::borrow(namespace_);
    RowNodes nodes(rows);
    decode_nodes(nodes, refs, builder);
    return make_spec(Spec(std::move(builder)));
}

void check_rows(bool none_is_leaf, nb::handle rows, size_t num_refs) {
    require_tuple("rows", rows);
    RowNodes nodes(rows);
    for_each_node(nodes, none_is_leaf, num_refs, [](Node, const size_t *) {});
}

}  // namespace pydag
