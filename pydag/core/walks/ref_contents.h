// SPDX-License-Identifier: Apache-2.0
//
// JAX's refs, mutable arrays, at a call of a compiled function: it takes and returns their contents.
#pragma once

#include "base/box.h"

namespace pydag {

// What the core has to know of JAX to read and write the content of a ref.
struct RefAccess {
    nb::object ref_class;       // whose `_refs._buf` is the content
    nb::object array_class;     // of an ordinary content
    nb::object sharding_class;  // of the `_sharding` of a content on one device
    nb::object is_top_level;    // a function: whether JAX traces nothing at the moment
    nb::object new_ref;         // a function
    auto python_refs() { return std::tie(ref_class, array_class, sharding_class, is_top_level, new_ref); }

    bool is_ref(PyObject *leaf) const { return as_object(Py_TYPE(leaf)) == ref_class.ptr(); }
    bool may_read() const;
    // Null for one that isn't ordinary: the ref is of a kind, or the content on several devices, or no array of
    // JAX's own.
    nb::object content(nb::handle ref) const;
};
static_assert(sizeof(RefAccess) == 5 * sizeof(nb::object), "list the new member in python_refs()");
using RefAccessBox = Box<RefAccess>;

nb::object make_ref_access(nb::handle ref_class, nb::handle array_class, nb::handle sharding_class,
                           nb::handle is_top_level, nb::handle new_ref);

void write_content(nb::handle ref, nb::handle content);

}  // namespace pydag
