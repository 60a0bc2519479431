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
    auto python_refs() { return std::tie(spec, leaves); }
};
static_assert(sizeof(Result) == 2 * sizeof(nb::object), "list the new member in python_refs()");
using ResultBox = Box<Result>;

// `spec`: a PyDagSpec; `leaves`: a tuple or a list. TypeError for anything else.
nb::object make_result(nb::handle spec, nb::handle leaves);
// (leaves, spec)
nb::object open_result(nb::handle result);
// The DAG that a Result stands for; for any other object its attribute `tree`.
nb::object build_result(nb::handle object);

}  // namespace pydag
