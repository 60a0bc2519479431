// SPDX-License-Identifier: Apache-2.0
#include "structure/listing.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/tuples.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/paths.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace pydag {
namespace {

// (name, value) of each meta field.
nb::object meta_fields(FieldsRefs refs) {
    const nb::object names = refs.registration().meta_names;
    RefBuffer<8> pairs;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(refs.meta()); ++i)
        pairs.push_new(checked(PyTuple_Pack(2, PyTuple_GET_ITEM(names.ptr(), i), refs.meta_values()[i])));
    return pairs.take_tuple();
}

nb::object detail_of(Kind kind, PyObject *const *refs) {
    const NodeRefs node{kind, refs};
    if (node.find(Role::kMeta)) return meta_fields({refs});
    for (const Role role : {Role::kAuxData, Role::kFactory, Role::kMaxlen})
        if (PyObject *const detail = node.find(role)) return nb::borrow(detail);
    return nb::none();
}

// Sorted keys and keys in insertion order have one name.
constexpr const char *kRoleNames[] = {"",       "keys",         "keys",     "names", "class",  "default_factory",
                                      "maxlen", "registration", "aux_data", "meta",  "entries"};
static_assert(std::size(kRoleNames) == kNumRoles);

nb::object role_names(Kind kind) {
    RefBuffer<kMostRefs> names;
    for (uint32_t i = 0; i < num_refs(kind); ++i)
        names.push_new(checked(PyUnicode_InternFromString(kRoleNames[static_cast<size_t>(traits(kind).roles[i])])));
    return names.take_tuple();
}

// What is read of a record.
struct Row {
    explicit Row(PyObject *record) {
        if (!PyTuple_Check(record) || PyTuple_GET_SIZE(record) < 3) fail(PyExc_TypeError, "a record must be a tuple");
        PyObject *const kind = PyTuple_GET_ITEM(record, 0);
        is_leaf = is_named(kind, Kind::kLeaf);
        is_alias = is_named(kind, Kind::kAlias);
        number = PyLong_AsLong(PyTuple_GET_ITEM(record, 1));
        const unsigned long children = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(record, 2));
        if (PyErr_Occurred()) nb::raise_python_error();
        count = static_cast<uint32_t>(std::min(children, static_cast<unsigned long>(UINT32_MAX)));
    }
    static bool is_named(PyObject *name, Kind kind) {
        return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, traits(kind).name) == 0;
    }
    bool is_leaf, is_alias;
    long number;
    uint32_t count;
};

}  // namespace

void make_kind_names() {
    for (size_t i = 0; i < kNumKinds; ++i)
        kind_names[i] = checked(PyUnicode_InternFromString(kKindTraits[i].name)).release().ptr();
}

nb::object node_kinds() {
    nb::object rows = checked(PyList_New(0));
    for (size_t i = 0; i < kNumKinds; ++i) {
        const Kind kind = static_cast<Kind>(i);
        const nb::object roles = role_names(kind);
        const nb::object row =
            checked(Py_BuildValue("(OOOO)", kind_name(kind), roles.ptr(), traits(kind).is_mapping ? Py_True : Py_False,
                                  traits(kind).has_identity ? Py_True : Py_False));
        checked(PyList_Append(rows.ptr(), row.ptr()));
    }
    return rows;
}

nb::object listing(const Structure &structure, nb::handle record_class) {
    if (!PyType_Check(record_class.ptr()) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(record_class.ptr()), &PyTuple_Type))
        fail(PyExc_TypeError, "a record's class must be a subclass of tuple");
    auto *const type = reinterpret_cast<PyTypeObject *>(record_class.ptr());
    nb::object records = checked(PyList_New(0));
    Nesting<ChildOf> around;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        nb::object entry = nb::none(), attribute = nb::none();
        if (!around.empty()) {
            const ChildOf parent = around.innermost().pass();
            const Step step = step_of(parent.kind, parent.refs, parent.child);
            if (step.is_attribute && PyUnicode_Check(step.entry.ptr())) attribute = step.entry;
            entry = step.is_attribute ? entry_of(parent.kind, parent.refs, parent.child) : step.entry;
        }
        const long number = node.is_alias() ? node.count : node.is_anchor ? at.number() : -1L;
        RefBuffer<7> fields;
        fields.push_borrowed(kind_name(node.kind));
        fields.push_new(checked(PyLong_FromLong(number)));
        fields.push_new(checked(PyLong_FromUnsignedLong(num_children(node))));
        fields.push_new(std::move(entry));
        fields.push_new(std::move(attribute));
        const nb::object cls = type_of(node.kind, at.refs());
        fields.push_borrowed(cls.is_valid() ? cls.ptr() : Py_None);
        fields.push_new(detail_of(node.kind, at.refs()));
        const nb::object record = tuple_of_class(type, fields.data(), fields.size());
        fields.forget_to(0);
        checked(PyList_Append(records.ptr(), record.ptr()));
        around.add({node.kind, at.refs()}, num_children(node), [](const ChildOf &) {});
    }
    return records;
}

nb::object connections(nb::handle records) {
    const nb::object rows = checked(PySequence_Tuple(records.ptr()));
    const auto size = static_cast<uint32_t>(PyTuple_GET_SIZE(rows.ptr()));
    std::vector<long> parents, ends(size), closed, leaves;
    std::vector<std::vector<long>> slots;
    std::vector<std::pair<size_t, long>> aliases;
    Nesting<uint32_t> around;
    for (uint32_t i = 0; i < size; ++i) {
        interruptible_step();
        const Row row(PyTuple_GET_ITEM(rows.ptr(), i));
        if (i > 0 && around.empty()) fail(PyExc_ValueError, "a listing must have one root");
        parents.push_back(i > 0 ? static_cast<long>(around.innermost()) : -1);
        if (row.is_leaf) leaves.push_back(i);
        if (row.is_alias) aliases.emplace_back(row.number, i);
        else if (row.number >= 0) slots.push_back({static_cast<long>(i)});
        around.add(i, row.count, [&](uint32_t done) { ends[done] = i + 1, closed.push_back(done); });
    }
    if (closed.size() != size) fail(PyExc_ValueError, "a record of a listing has too few children");
    for (const auto &[number, position] : aliases) {
        if (number >= slots.size()) fail(PyExc_ValueError, "an alias of a listing has no anchor");
        slots[number].push_back(position);
    }
    nb::object lists = checked(PyList_New(0));
    for (const std::vector<long> &own : slots) checked(PyList_Append(lists.ptr(), tuple_of_numbers(own).ptr()));
    return tuple_of(tuple_of_numbers(parents), tuple_of_numbers(ends), tuple_of_numbers(closed), std::move(lists),
                    tuple_of_numbers(leaves));
}

size_t num_distinct_nodes(const Structure &structure) {
    size_t count = 0;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) count += !structure.nodes[i].is_alias();
    return count;
}

// Adds up, for each node, the paths below it. The number of an anchor is kept only until its last alias has
// been counted, because such a number may have as many digits as the structure is deep.
nb::object num_paths(const Structure &structure) {
    struct Item {
        uint32_t number;
        bool is_anchor;
    };
    Nesting<Item> around;
    std::vector<nb::object> sums;  // of this node and of those around it
    std::vector<nb::object> known(structure.num_shared);
    std::vector<uint32_t> last_alias(structure.num_shared);
    for (uint32_t i = 0; i < structure.num_nodes; ++i)
        if (structure.nodes[i].is_alias()) last_alias[structure.nodes[i].count] = i;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        if (!node.is_alias()) sums.push_back(nb::int_(node.is_leaf() ? 1 : 0));
        else if (last_alias[node.count] > at.position()) sums.push_back(known[node.count]);
        else sums.push_back(std::move(known[node.count]));
        around.add({at.number(), node.is_anchor}, num_children(node), [&](const Item &done) {
            if (done.is_anchor) known[done.number] = sums.back();
            if (around.empty()) return;
            const nb::object sum = std::move(sums.back());
            sums.pop_back();
            sums.back() = checked(PyNumber_Add(sums.back().ptr(), sum.ptr()));
        });
    }
    return std::move(sums.back());
}

nb::object shared_of(const Structure &structure) {
    nb::object result = checked(PyList_New(0));
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        if (!node.is_anchor) continue;
        const nb::object type = node.is_leaf() ? nb::none() : type_of(node.kind, at.refs());
        const nb::object row = nb::make_tuple(at.number(), tree_kind(node.kind), type);
        checked(PyList_Append(result.ptr(), row.ptr()));
    }
    return result;
}

}  // namespace pydag
