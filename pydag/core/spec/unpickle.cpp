// SPDX-License-Identifier: Apache-2.0
//
// A structure from its pickled state (the format is described in spec_pickle.cpp). Nothing in a
// state is believed.
#include "spec/node_checker.h"
#include "spec/pickled_refs.h"
#include "spec/spec.h"
#include "types/keys.h"
#include "types/registry.h"

namespace pydag {
namespace {

// What the references of a node must be, given the number of its children.
void decode_refs(Kind kind, uint32_t count, StateRefs &encoded, Refs &refs) {
    const size_t num = num_refs({kind, false, 0, 0});
    encoded.advance(num);
    const nb::handle first(num > 0 ? encoded[0] : nullptr);
    if (traits(kind).is_mapping) {
        nb::object keys = encoded.keys(0, kind != Kind::kOrderedDict);
        require(KeysBox::of(keys).size() == count, "a mapping must have one child for each key");
        refs.push_new(std::move(keys));
        if (kind != Kind::kDefaultDict) return;
        require(encoded[1] == Py_None || PyCallable_Check(encoded[1]), "a default factory must be callable");
        refs.push_borrowed(encoded[1]);
    } else if (kind == Kind::kNamedTuple || kind == Kind::kStructSequence) {
        const nb::object size = encoded.tuple_size(0, kind == Kind::kNamedTuple);
        const Py_ssize_t expected = PyLong_AsSsize_t(size.ptr());
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
        const nb::object registration = encoded.registration(0, false);
        require(encoded[2] == Py_None || (is_tuple(encoded[2]) && PyTuple_GET_SIZE(encoded[2]) == count),
                "entries must be None or one for each child");
        refs.push_borrowed(registration.ptr());
        refs.push_borrowed(encoded[1]);
        refs.push_borrowed(encoded[2]);
    } else if (kind == Kind::kFields) {
        const nb::object box = encoded.registration(0, true);
        const Registration &registration = RegistrationBox::of(box);
        nb::object keys = encoded.keys(1, false);
        require(KeysBox::of(keys).size() == count, "a registered class must have one child for each field");
        for (uint32_t i = 0; i < count; ++i)
            require(PyUnicode_Check(KeysBox::of(keys).key(i)), "names of fields must be strings");
        if (!registration.data.is_none()) {
            require(equal_keys(registration.data, keys), "the class has other fields now");
            keys = registration.data;
        }
        require(is_tuple(encoded[2]) &&
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

void restore_state(nb::handle state, StructureBuilder &builder) {
    if (!is_tuple(state) || PyTuple_GET_SIZE(state.ptr()) != 6)
        fail(PyExc_TypeError, "the state of a PyDagSpec must be a tuple of six, got %U", short_repr(state).ptr());
    PyObject *const *const parts = &PyTuple_GET_ITEM(state.ptr(), 0);
    require(PyLong_CheckExact(parts[0]) && PyLong_AsLong(parts[0]) == kStateFormat && !PyErr_Occurred(),
            "unknown format");
    require(PyBool_Check(parts[1]), "none_is_leaf must be a bool");
    require(PyUnicode_CheckExact(parts[2]), "the namespace must be a string");
    require(PyBytes_CheckExact(parts[3]) && PyBytes_GET_SIZE(parts[3]) % 8 == 0, "nodes must be 8 bytes each");
    require(PyBytes_CheckExact(parts[4]), "the places of references must be bytes");
    require(is_tuple(parts[5]), "references must be a tuple");
    builder.none_is_leaf = parts[1] == Py_True;
    builder.namespace_ = nb::borrow(parts[2]);

    NodeChecker checker(builder.none_is_leaf);
    const size_t num_nodes = static_cast<size_t>(PyBytes_GET_SIZE(parts[3])) / 8;
    require(num_nodes < UINT32_MAX, "too many nodes");
    const auto *bytes = reinterpret_cast<const unsigned char *>(PyBytes_AS_STRING(parts[3]));
    StateRefs refs(parts[5], parts[4]);
    for (size_t i = 0; i < num_nodes; ++i, bytes += 8) {
        const Node node = decode_node(bytes);
        checker.check(node);
        builder.num_leaves += node.kind == Kind::kLeaf;
        builder.nodes.push(node);
        decode_refs(node.kind, node.count, refs, builder.refs);
    }
    builder.num_shared = checker.finish_all();
    refs.finish();
}

}  // namespace pydag
