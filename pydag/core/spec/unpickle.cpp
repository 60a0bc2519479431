// SPDX-License-Identifier: Apache-2.0
//
// A structure from its pickled state (the format is described in pickle.cpp). Nothing in a
// state is believed.
#include "base/interrupt.h"
#include "spec/node_checker.h"
#include "spec/pickled_refs.h"
#include "spec/spec.h"
#include "types/keys.h"
#include "types/registry.h"

#include <array>

namespace pydag {
namespace {

// Checks the references of a node by their roles, given the number of its children.
class NodeDecoder {
public:
    NodeDecoder(Kind kind, uint32_t count, StateRefs &encoded) : kind_(kind), count_(count), encoded_(encoded) {}

    void run(Refs &refs) {
        encoded_.advance(num_refs(kind_));
        for (uint32_t i = 0; i < num_refs(kind_); ++i) refs.push_new(decoded(traits(kind_).roles[i], i));
    }

private:
    nb::object decoded(Role role, uint32_t i) {
        if (role == Role::kSortedKeys || role == Role::kKeys) return keys(i, role == Role::kSortedKeys);
        if (role == Role::kNames) return names(i);
        if (role == Role::kRegistration) return registration_ = encoded_.registration(i, kind_);
        check(role, i);
        return nb::borrow(encoded_[i]);
    }

    nb::object keys(uint32_t i, bool sorted) {
        nb::object keys = encoded_.keys(i, sorted);
        require(KeysBox::of(keys).size() == count_, "a mapping must have one child for each key");
        return keys;
    }

    nb::object names(uint32_t i) {
        nb::object keys = encoded_.keys(i, false);
        require(KeysBox::of(keys).size() == count_, "a registered class must have one child for each field");
        for (uint32_t child = 0; child < count_; ++child)
            require(PyUnicode_Check(KeysBox::of(keys).key(child)), "names of fields must be strings");
        const nb::object data = RegistrationBox::of(registration_).data;
        if (data.is_none()) return keys;
        require(equal_keys(data, keys), "the class has other fields now");
        return data;
    }

    // Of what stays as it is.
    void check(Role role, uint32_t i) {
        const nb::handle ref(encoded_[i]);
        if (role == Role::kFactory)
            require(ref.is_none() || PyCallable_Check(ref.ptr()), "a default factory must be callable");
        if (role == Role::kClass) check_class(i);
        if (role == Role::kMaxlen) check_maxlen(ref);
        if (role == Role::kEntries)
            require(ref.is_none() || (is_tuple(ref) && PyTuple_GET_SIZE(ref.ptr()) == static_cast<Py_ssize_t>(count_)),
                    "entries must be None or one for each child");
        if (role == Role::kMeta)
            require(is_tuple(ref) && static_cast<size_t>(PyTuple_GET_SIZE(ref.ptr())) ==
                                         RegistrationBox::of(registration_).meta_access.size(),
                    "there must be one value for each meta field");
    }

    void check_class(uint32_t i) {
        const nb::object size = encoded_.tuple_size(i, kind_);
        const Py_ssize_t expected = PyLong_AsSsize_t(size.ptr());
        if (PyErr_Occurred()) nb::raise_python_error();
        require(expected == static_cast<Py_ssize_t>(count_), "a tuple class must have one child for each field");
    }

    void check_maxlen(nb::handle ref) {
        const Py_ssize_t maxlen = PyLong_CheckExact(ref.ptr()) ? PyLong_AsSsize_t(ref.ptr()) : -1;
        PyErr_Clear();
        require(ref.is_none() || (maxlen >= 0 && static_cast<size_t>(maxlen) >= count_),
                "maxlen of a deque must be None or at least its length");
    }

    const Kind kind_;
    const uint32_t count_;
    StateRefs &encoded_;
    nb::object registration_;  // comes before what depends on it
};

// The kind of each code; kNumKinds where there is none.
constexpr std::array<uint8_t, 256> kKindsByCode = [] {
    std::array<uint8_t, 256> kinds{};
    kinds.fill(kNumKinds);
    for (uint8_t kind = 0; kind < kNumKinds; ++kind) kinds[kKindTraits[kind].code] = kind;
    return kinds;
}();

// Four bytes, the lowest first.
uint32_t read_word(const unsigned char *bytes) {
    return bytes[0] | static_cast<uint32_t>(bytes[1]) << 8 | static_cast<uint32_t>(bytes[2]) << 16 |
           static_cast<uint32_t>(bytes[3]) << 24;
}

Node decode_node(const unsigned char *bytes) {
    const uint8_t kind = kKindsByCode[bytes[0]];
    require(kind < kNumKinds, "unknown kind of node");
    const uint32_t flags = read_word(bytes) >> 8;
    require(flags <= 1, "unknown flag of a node");
    return {static_cast<Kind>(kind), flags == 1, 0, read_word(bytes + 4)};
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
    namespace_text(parts[2]);  // checks it
    builder.namespace_ = nb::borrow(parts[2]);

    NodeChecker checker(builder.none_is_leaf);
    const size_t num_nodes = static_cast<size_t>(PyBytes_GET_SIZE(parts[3])) / 8;
    require(num_nodes < UINT32_MAX, "too many nodes");
    const auto *bytes = reinterpret_cast<const unsigned char *>(PyBytes_AS_STRING(parts[3]));
    StateRefs refs(parts[5], parts[4]);
    builder.nodes.reserve(num_nodes);
    for (size_t i = 0; i < num_nodes; ++i, bytes += 8) {
        interruptible_step();
        const Node node = decode_node(bytes);
        checker.check(node);
        builder.num_leaves += node.is_leaf();
        builder.nodes.push_reserved(node);
        if (num_refs(node) > 0) NodeDecoder(node.kind, node.count, refs).run(builder.refs);
    }
    builder.num_shared = checker.finish_all();
    refs.finish();
}

}  // namespace pydag
