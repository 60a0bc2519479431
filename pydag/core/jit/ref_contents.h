// SPDX-License-Identifier: Apache-2.0
//
// JAX's refs, which are mutable arrays: a compiled function takes and returns their contents in their place.
#pragma once

#include "base/box.h"
#include "walks/flatten.h"

#include <vector>

namespace pydag {

// What the core has to know of JAX to read and write the content of a ref.
struct RefAccess {
    nb::object ref_class;       // the content of an instance is its `_refs._buf`
    nb::object array_class;     // the class of an ordinary content
    nb::object sharding_class;  // the class of the `_sharding` of a content on one device
    nb::object is_top_level;    // () -> whether JAX traces nothing at the moment
    nb::object new_ref;         // (array) -> a ref with that content
    auto python_refs() { return std::tie(ref_class, array_class, sharding_class, is_top_level, new_ref); }

    bool is_ref(PyObject *leaf) const { return as_object(Py_TYPE(leaf)) == ref_class.ptr(); }
    bool is_array(PyObject *object) const { return as_object(Py_TYPE(object)) == array_class.ptr(); }
    bool may_read() const { return checked(PyObject_IsTrue(call(is_top_level).ptr())) == 1; }
};
static_assert(sizeof(RefAccess) == 5 * sizeof(nb::object), "list the new member in python_refs()");
using RefAccessBox = Box<RefAccess>;

nb::object make_ref_access(nb::handle ref_class, nb::handle array_class, nb::handle sharding_class,
                           nb::handle is_top_level, nb::handle new_ref);

// The contents of the refs among some leaves.
class RefContents {
public:
    using Positions = std::vector<uint32_t>;
    // `refs`: the positions of the refs among the leaves, in order.
    explicit RefContents(const Positions &refs) : positions_(refs) {}

    // False if a ref or its content isn't ordinary. `known`: the types of the refs of the last call, which were
    // ordinary.
    bool read(const Leaves &leaves, const RefAccess &access, bool has_devices, nb::tuple &known);
    // Whether one of these contents has another owner, such as a caller of `jax.freeze`. Then a compiled function must
    // not reuse its memory. Without the GIL that can't be known, and the answer is false.
    bool is_held_elsewhere(const Positions &written) const;
    // Swaps refs and contents: the first call replaces the refs by their contents, the second puts the refs back.
    void exchange(Leaves &leaves);
    // Makes these the contents of some of the refs, whose positions are given in order.
    void write(const Positions &written, nb::handle contents);

private:
    // False if a ref isn't ordinary.
    bool find_holders(const Leaves &leaves, nb::tuple &known);
    // Calls `visit` with a written ref's index among the refs and among the written refs, until it returns false.
    template <class Visit>
    bool visit_written(const Positions &written, Visit visit) const {
        for (size_t i = 0, ref = 0; i < written.size(); ++i) {
            while (positions_[ref] != written[i]) ++ref;
            if (!visit(ref, i)) return false;
        }
        return true;
    }

    const Positions &positions_;
    Leaves contents_, holders_;
};

// The i-th item of a tuple; TypeError for a shorter tuple, and for anything else.
nb::handle item_of(nb::handle tuple, size_t i);

}  // namespace pydag
