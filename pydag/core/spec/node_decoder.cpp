// SPDX-License-Identifier: Apache-2.0
#include "spec/node_decoder.h"

#include "base/interrupt.h"
#include "spec/encoded_refs.h"
#include "spec/node_checker.h"
#include "types/keys.h"
#include "types/registry.h"

#include <algorithm>

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
    EncodedRefs &encoded_;
    nb::object registration_;  // comes before what depends on it
};

// Calls `use` with each node, and the indices of its references, once they are checked. Returns the number of
// shared objects.
template <class Use>
uint32_t for_each_node(NodeSource &source, bool none_is_leaf, size_t num_refs_given, Use use) {
    require(source.size() < UINT32_MAX, "nodes: there are too many");
    NodeChecker checker(none_is_leaf);
    std::vector<char> used(num_refs_given);  // 1: by some node
    for (size_t i = 0; i < source.size(); ++i) {
        interruptible_step();
        in_field("nodes", i, [&] {
            size_t indices[kMostRefs];
            const Node node = source.read(i, indices);
            checker.check(node);
            for (uint32_t ref = 0; ref < num_refs(node); ++ref) {
                require(indices[ref] < num_refs_given, "a reference must be an index of refs");
                used[indices[ref]] = 1;
            }
            use(node, indices);
        });
    }
    const uint32_t num_shared = checker.finish_all();
    const auto unused = std::find(used.begin(), used.end(), 0);
    in_field("refs", static_cast<size_t>(unused - used.begin()),
             [&] { require(unused == used.end(), "no node uses it"); });
    return num_shared;
}

}  // namespace

void check_nodes(NodeSource &source, bool none_is_leaf, size_t num_refs) {
    for_each_node(source, none_is_leaf, num_refs, [](Node, const size_t *) {});
}

void decode_nodes(NodeSource &source, nb::handle refs, StructureBuilder &builder) {
    EncodedRefs encoded(refs);
    builder.nodes.reserve(source.size());
    builder.num_shared =
        for_each_node(source, builder.none_is_leaf, encoded.size(), [&](Node node, const size_t *indices) {
            builder.num_leaves += node.is_leaf();
            builder.nodes.push_reserved(node);
            if (num_refs(node) == 0) return;
            encoded.choose({indices, num_refs(node)});
            NodeDecoder(node.kind, node.count, encoded).run(builder.refs);
        });
}

}  // namespace pydag
