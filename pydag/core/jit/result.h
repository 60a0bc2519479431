// SPDX-License-Identifier: Apache-2.0
//
// A DAG taken apart, as a Python object: what a compiled function returns to us through JAX, which
// makes it by calling `make_result` and takes it apart by calling `open_result`, without any Python code.
#pragma once

#include "base/box.h"

namespace pydag {

struct Result {
    nb::object spec;    // a PyDagSpec
    nb::object leaves;  // the objects that replace the leaves, a tuple or list
    // Where refs are among the leaves, a tuple of a number for each leaf: of the object of the caller's that
    // stands there; or one of the following. Else None. `leaves` are then without the caller's objects.
    nb::object sources;
    // Where leaves that JAX doesn't trace are among the leaves, an object with two tuples: `positions`, ascending, and
    // the `values` that stand there. Else None. `leaves` and `sources` are then without these.
    nb::object statics;
    auto python_refs() { return std::tie(spec, leaves, sources, statics); }
};
static_assert(sizeof(Result) == 4 * sizeof(nb::object), "list the new member in python_refs()");
using ResultBox = Box<Result>;

inline constexpr Py_ssize_t kSourceArray = -1;   // the next of `leaves`
inline constexpr Py_ssize_t kSourceNewRef = -2;  // a fresh ref with the next of `leaves` as its content

// `structure`: a PyDagSpec, or a tuple of one, the sources, and the statics; `leaves`: a tuple or a list. TypeError
// for anything else.
nb::object make_result(nb::handle structure, nb::handle leaves);
// (leaves, structure)
nb::object open_result(nb::handle result);
// The DAG that a Result stands for; for any other object its attribute `tree`, or the object itself where its class
// has no such attribute.
nb::object build_result(nb::handle object);
// The same where refs may be among the leaves. `given`: the objects of the caller's, a tuple or a list;
// `new_ref`: makes a ref. What isn't a Result is built by its function `fill`.
nb::object fill_result(nb::handle object, nb::handle given, nb::handle new_ref);
// Whether it needs that.
bool holds_refs(nb::handle object);

}  // namespace pydag
