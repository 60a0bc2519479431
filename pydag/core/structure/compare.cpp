// SPDX-License-Identifier: Apache-2.0
//
// Equality of specs: one pass over two flat arrays.
#include "spec/spec.h"
#include "types/keys.h"
#include "types/registry.h"

#include <algorithm>
#include <tuple>

namespace pydag {

// By what each reference is: keys by their order, registrations by what they do, the values of meta
// fields one by one, everything else (types, aux_data, default factories) by identity, then `==`.
bool equal_refs(PyObject *a, PyObject *b) {
    if (a == b) return true;
    if (KeysBox::check(a)) return KeysBox::check(b) && equal_keys(a, b);
    if (RegistrationBox::check(a)) return RegistrationBox::check(b) && same_registration(a, b);
    return checked(PyObject_RichCompareBool(a, b, Py_EQ)) != 0;
}

bool Spec::equals(const Spec &other) const {
    const Structure &a = structure_, &b = other.structure_;
    if (this == &other) return true;
    if (is_empty() || other.is_empty()) return false;
    if (a.num_nodes != b.num_nodes || a.num_refs != b.num_refs || a.none_is_leaf != b.none_is_leaf) return false;
    if (hash_ != -1 && other.hash_ != -1 && hash_ != other.hash_) return false;
    if (std::memcmp(a.nodes, b.nodes, a.num_nodes * sizeof(Node)) != 0) return false;
    // The empty namespace goes with every other one.
    if (PyUnicode_GET_LENGTH(a.namespace_) > 0 && PyUnicode_GET_LENGTH(b.namespace_) > 0 &&
        PyUnicode_Compare(a.namespace_, b.namespace_) != 0)
        return false;
    // Mostly the references are the very same.
    PyObject *const *const end = a.refs + a.num_refs;
    PyObject *const *ref = a.refs;
    uint32_t node = 0;
    PyObject *const *node_end = a.refs + num_refs(a.nodes[0]);
    for (PyObject *const *other = b.refs;; ++ref, ++other) {
        std::tie(ref, other) = std::mismatch(ref, end, other);
        if (ref == end) return true;
        while (node_end <= ref) node_end += num_refs(a.nodes[++node]);
        const auto place = ref - (node_end - num_refs(a.nodes[node]));
        if (place < num_compared_refs(a.nodes[node]) && !equal_refs(*ref, *other)) return false;
    }
}

}  // namespace pydag
