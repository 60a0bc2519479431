// SPDX-License-Identifier: Apache-2.0
#include "spec/node_decoder.h"

#include "types/keys.h"
#include "types/registry.h"

namespace pydag {
namespace {

// Checks the references of a node by their roles, given the number of its children.
class NodeDecoder {
public:
    NodeDecoder(Kind kind, uint32_t count, EncodedRefs &encoded) : kind_(kind), count_(count), encoded_(encoded) {}

    void run(Refs &refs) {
        for (uint32_t i = 0; i < num_refs(kind_); ++i) refs.push_new(decoded(traits(kind_).roles[i], i));
    }

private:
    nb::object decoded(Role role, uint32_t i) {
        if (role == Role::kSortedKeys || role == Role::kKeys) return keys(i, role);
        if (role == Role::kNames) return names(i);
        if (role == Role::kRegistration) return registration_ = encoded_.registration(i, kind_);
        check(role, i);
        return nb::borrow(encoded_[i]);
    }

    nb::object keys(uint32_t i, Role role) {
        nb::object keys = encoded_.keys(i, role);
        require(KeysBox::of(keys).size() == count_, "a mapping must have one child for each key");
        return keys;
    }

    nb::object names(uint32_t i) {
        nb::object keys = encoded_.keys(i, Role::kNames);
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
        if (expected < 0 && PyErr_Occurred()) nb::raise_python_error();
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
    EncodedRefs &encoded_;
    nb::object registration_;  // comes before what depends on it
};

}  // namespace

void decode_refs(Node node, std::span<const size_t> indices, EncodedRefs &encoded, Refs &refs) {
    encoded.choose(indices);
    NodeDecoder(node.kind, node.count, encoded).run(refs);
}

}  // namespace pydag
