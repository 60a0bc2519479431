// SPDX-License-Identifier: Apache-2.0
//
// A DAG taken apart, as a Python object. A compiled function returns it through JAX, which calls `make_result` and
// `open_result` as the functions of a node, without any Python code.
#pragma once

#include "base/box.h"

namespace pydag {

struct Result {
    nb::object spec;    // a PyDagSpec
    nb::object leaves;  // the objects that replace the leaves, a tuple or list
    // None if no leaf is a ref. Else a tuple with a number for each leaf: which of the caller's objects it is, or one
    // of the constants below. `leaves` are then without the caller's objects.
    nb::object sources;
    // None if JAX traces all leaves. Else an object with two tuples: `positions`, ascending, and the `values` there.
    // `leaves` and `sources` are then without these.
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
// The DAG of a Result, which must hold no refs; any other object is its own DAG.
nb::object build_result(nb::handle object);
// The same if refs may be among the leaves. `given`: the caller's objects, a tuple or a list; `new_ref`: makes a ref.
// An instance of the filled class is built by its function `fill`.
nb::object fill_result(nb::handle object, nb::handle given, nb::handle new_ref);
// Whether an object has to be built by `fill_result`.
bool holds_refs(nb::handle object);
// From now on the instances of this class are results, too. A class is known by being that class: arrays of NumPy have
// a function `fill` of their own.
void set_filled_class(nb::type_object type);

}  // namespace pydag
