// SPDX-License-Identifier: Apache-2.0
#include "jit/static_leaves.h"

#include "base/constants.h"
#include "jit/value_key.h"

namespace pydag {
namespace {

constexpr Py_ssize_t kMost = 4096;  // leaves that are known: they are easily made again

}  // namespace

StaticLeaves make_static_leaves() { return {checked(PyDict_New())}; }

nb::object find_static_leaf(const StaticLeaves &leaves, nb::handle value) {
    return find_in_dict(leaves.by_key, value_key(value));
}

void add_static_leaf(const StaticLeaves &leaves, nb::handle leaf) {
    const nb::object key = value_key(checked(PyObject_GetAttr(leaf.ptr(), constants.value)));
    if (PyDict_GET_SIZE(leaves.by_key.ptr()) >= kMost) forget_static_leaves(leaves);
    checked(PyDict_SetItem(leaves.by_key.ptr(), key.ptr(), leaf.ptr()));
}

void forget_static_leaves(const StaticLeaves &leaves) { PyDict_Clear(leaves.by_key.ptr()); }

}  // namespace pydag
