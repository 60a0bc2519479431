// SPDX-License-Identifier: Apache-2.0
//
// JAX's refs, mutable arrays, at a call of a compiled function: it takes and returns their contents.
#pragma once

#include "base/box.h"
#include "walks/flatten_pure.h"

#include <vector>

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
    // The type of a ref, as JAX has it, and whether a ref of a type is an ordinary one, of no kind.
    nb::object type_of(nb::handle ref) const;
    bool is_ordinary(nb::handle type) const;
    // The object whose `_buf` is the content of a ref.
    nb::object holder(nb::handle ref) const;
    // Null for one that isn't ordinary: it is no array of JAX's own, or, where there are several devices, on
    // several of them.
    nb::object content(nb::handle holder, bool has_devices) const;
};
static_assert(sizeof(RefAccess) == 5 * sizeof(nb::object), "list the new member in python_refs()");
using RefAccessBox = Box<RefAccess>;

nb::object make_ref_access(nb::handle ref_class, nb::handle array_class, nb::handle sharding_class,
                           nb::handle is_top_level, nb::handle new_ref);

// The contents of the refs among some leaves.
class RefContents {
public:
    using Positions = std::vector<uint32_t>;
    // `refs`: where they stand.
    explicit RefContents(const Positions &refs) : positions_(refs) {}

    // False if a ref isn't ordinary. `known`: the types of refs that came last, which needn't be looked at again.
    bool read(const Leaves &leaves, const RefAccess &access, bool has_devices, nb::tuple &known);
    // Puts the contents in the place of the refs; the second time, the refs in their places again.
    void exchange(Leaves &leaves);
    // Lets these be the contents of some of the refs, whose positions are given in order.
    void write(const Positions &written, nb::handle contents);

private:
    bool are_ordinary(const Leaves &leaves, const RefAccess &access, nb::tuple &known);

    const Positions &positions_;
    Leaves contents_, holders_;
};

// An item of what should be a tuple of at least so many; TypeError for anything else.
nb::handle item_of(nb::handle tuple, size_t i);

}  // namespace pydag
