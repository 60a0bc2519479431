// SPDX-License-Identifier: Apache-2.0
//
// A structure from its pickled state (the format is described in spec_pickle.cpp). Nothing in a
// state is believed.
#include "keys.h"
#include "node_checker.h"
#include "registry.h"
#include "spec.h"

#include <algorithm>
#include <memory>

namespace pydag {
namespace {

nb::object decode_keys(nb::handle state) {
    require(PyTuple_CheckExact(state.ptr()) && PyTuple_GET_SIZE(state.ptr()) == 2, "keys must be a pair");
    const nb::handle inserted(PyTuple_GET_ITEM(state.ptr(), 0)), places(PyTuple_GET_ITEM(state.ptr(), 1));
    require(PyTuple_CheckExact(inserted.ptr()), "keys must be a tuple");
    const size_t count = static_cast<size_t>(PyTuple_GET_SIZE(inserted.ptr()));
    const nb::object distinct = checked(PySet_New(inserted.ptr()));  // TypeError for an unhashable key
    require(static_cast<size_t>(PySet_GET_SIZE(distinct.ptr())) == count, "keys must be distinct");
    Ranks ranks_given;
    if (!places.is_none()) {
        require(PyTuple_CheckExact(places.ptr()) && static_cast<size_t>(PyTuple_GET_SIZE(places.ptr())) == count,
                "there must be one place for each key");
        uint32_t *const ranks = ranks_given.allocate(count);
        std::fill_n(ranks + count, count, UINT32_MAX);
        bool ascends = true;
        for (size_t i = 0; i < count; ++i) {
            PyObject *const place = PyTuple_GET_ITEM(places.ptr(), static_cast<Py_ssize_t>(i));
            const size_t rank = PyLong_CheckExact(place) ? PyLong_AsSize_t(place) : count;
            PyErr_Clear();
            require(rank < count && ranks[count + rank] == UINT32_MAX, "the places of keys must be a permutation");
            ranks[i] = static_cast<uint32_t>(rank);
            ranks[count + rank] = static_cast<uint32_t>(i);
            ascends = ascends && rank == i;
        }
        require(!ascends, "keys that are in order need no places");
    }
    return KeysBox::make(nb::borrow(inserted), nb::object(), std::move(ranks_given), static_cast<uint32_t>(count));
}

nb::object decode_registration(nb::handle state, bool is_fields) {
    require(PyTuple_CheckExact(state.ptr()) && PyTuple_GET_SIZE(state.ptr()) == 2, "a registration must be a pair");
    const nb::handle type(PyTuple_GET_ITEM(state.ptr(), 0)), namespace_(PyTuple_GET_ITEM(state.ptr(), 1));
    require(PyType_Check(type.ptr()) && PyUnicode_CheckExact(namespace_.ptr()),
            "a registration must be a class and a namespace");
    const TypeInfo info = Namespace::get(namespace_).find(reinterpret_cast<PyTypeObject *>(type.ptr()));
    if (!info.registration || (info.kind == Kind::kFields) != is_fields)
        fail(PyExc_RuntimeError,
             "Unknown custom type in pickled PyDagSpec: %R in namespace %R. Register it before the "
             "spec is restored.",
             type.ptr(), namespace_.ptr());
    return nb::borrow(info.registration);
}

// What the references of a node must be, given the number of its children.
void decode_refs(Kind kind, uint32_t count, PyObject *const *encoded, RefBuffer<48> &refs) {
    const nb::handle first(num_refs({kind, false, 0, 0}) > 0 ? encoded[0] : nullptr);
    if (traits(kind).is_mapping) {
        nb::object keys = decode_keys(first);
        require(KeysBox::of(keys).size() == count, "a mapping must have one child for each key");
        refs.push_new(std::move(keys));
        if (kind != Kind::kDefaultDict) return;
        require(encoded[1] == Py_None || PyCallable_Check(encoded[1]), "a default factory must be callable");
        refs.push_borrowed(encoded[1]);
    } else if (kind == Kind::kNamedTuple || kind == Kind::kStructSequence) {
        require(PyType_Check(first.ptr()), "the type of a tuple must be a class");
        auto *const type = reinterpret_cast<PyTypeObject *>(first.ptr());
        require(PyType_IsSubtype(type, &PyTuple_Type), "the type of a tuple must be a tuple class");
        const bool is_namedtuple = kind == Kind::kNamedTuple;
        const char *const attribute = is_namedtuple ? "_fields" : "n_sequence_fields";
        require(PyObject_HasAttrString(first.ptr(), attribute), "the type of a tuple must have named fields");
        const nb::object size = checked(PyObject_GetAttrString(first.ptr(), attribute));
        const Py_ssize_t expected =
            is_namedtuple ? checked(static_cast<int>(PyObject_Size(size.ptr()))) : PyLong_AsSsize_t(size.ptr());
        if (PyErr_Occurred()) nb::raise_python_error();
        require(expected == static_cast<Py_ssize_t>(count), "a tuple class must have one child for each field");
        refs.push_borrowed(first.ptr());
    } else if (kind == Kind::kDeque) {
        const Py_ssize_t maxlen = PyLong_CheckExact(first.ptr()) ? PyLong_AsSsize_t(first.ptr()) : -1;
        PyErr_Clear();
        require(first.is_none() || (maxlen >= 0 && static_cast<size_t>(maxlen) >= count),
                "maxlen of a deque must be None or at least its length");
        refs.push_borrowed(first.ptr());
    } else if (kind == Kind::kCustom) {
        const nb::object registration = decode_registration(first, false);
        require(encoded[2] == Py_None || (PyTuple_CheckExact(encoded[2]) && PyTuple_GET_SIZE(encoded[2]) == count),
                "entries must be None or one for each child");
        refs.push_borrowed(registration.ptr());
        refs.push_borrowed(encoded[1]);
        refs.push_borrowed(encoded[2]);
    } else if (kind == Kind::kFields) {
        const nb::object box = decode_registration(first, true);
        const Registration &registration = RegistrationBox::of(box);
        nb::object keys = decode_keys(encoded[1]);
        require(KeysBox::of(keys).size() == count, "a registered class must have one child for each field");
        for (uint32_t i = 0; i < count; ++i)
            require(PyUnicode_CheckExact(KeysBox::of(keys).key(i)), "names of fields must be strings");
        if (!registration.data.is_none()) {
            require(equal_keys(registration.data, keys), "the class has other fields now");
            keys = registration.data;
        }
        require(PyTuple_CheckExact(encoded[2]) &&
                    static_cast<size_t>(PyTuple_GET_SIZE(encoded[2])) == registration.meta_access.size(),
                "there must be one value for each meta field");
        refs.push_borrowed(box.ptr());
        refs.push_new(std::move(keys));
        refs.push_borrowed(encoded[2]);
    }
}

Node decode_node(const unsigned char *bytes) {
    require(bytes[0] < kNumKinds, "unknown kind of node");
    require(bytes[1] <= 1 && bytes[2] == 0 && bytes[3] == 0, "unknown flag of a node");
    const uint32_t count = bytes[4] | bytes[5] << 8 | bytes[6] << 16 | static_cast<uint32_t>(bytes[7]) << 24;
    return {static_cast<Kind>(bytes[0]), bytes[1] == 1, 0, count};
}

}  // namespace

void restore_state(nb::handle state, Draft &draft) {
    if (!PyTuple_CheckExact(state.ptr()) || PyTuple_GET_SIZE(state.ptr()) != 5)
        fail(PyExc_TypeError, "the state of a PyDagSpec must be a tuple of five, got %U", short_repr(state).ptr());
    PyObject *const *const parts = &PyTuple_GET_ITEM(state.ptr(), 0);
    require(PyLong_CheckExact(parts[0]) && PyLong_AsLong(parts[0]) == kStateFormat && !PyErr_Occurred(),
            "unknown format");
    require(PyBool_Check(parts[1]), "none_is_leaf must be a bool");
    require(PyUnicode_CheckExact(parts[2]), "the namespace must be a string");
    require(PyBytes_CheckExact(parts[3]) && PyBytes_GET_SIZE(parts[3]) % 8 == 0, "nodes must be 8 bytes each");
    require(PyTuple_CheckExact(parts[4]), "references must be a tuple");
    draft.none_is_leaf = parts[1] == Py_True;
    draft.namespace_ = nb::borrow(parts[2]);

    NodeChecker checker(draft.none_is_leaf);
    const size_t num_nodes = static_cast<size_t>(PyBytes_GET_SIZE(parts[3])) / 8;
    require(num_nodes < UINT32_MAX, "too many nodes");
    const auto *bytes = reinterpret_cast<const unsigned char *>(PyBytes_AS_STRING(parts[3]));
    const size_t num_refs_given = static_cast<size_t>(PyTuple_GET_SIZE(parts[4]));
    size_t next_ref = 0;
    for (size_t i = 0; i < num_nodes; ++i, bytes += 8) {
        const Node node = decode_node(bytes);
        checker.check(node);
        draft.num_leaves += node.kind == Kind::kLeaf;
        draft.nodes.push(node);
        require(next_ref + num_refs(node) <= num_refs_given, "references are missing");
        decode_refs(node.kind, node.count, &PyTuple_GET_ITEM(parts[4], static_cast<Py_ssize_t>(next_ref)), draft.refs);
        next_ref += num_refs(node);
    }
    draft.num_shared = checker.finish_all();
    require(next_ref == num_refs_given, "there are too many references");
}

}  // namespace pydag
