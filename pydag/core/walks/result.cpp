// SPDX-License-Identifier: Apache-2.0
#include "walks/result.h"

#include "base/constants.h"
#include "base/tuples.h"
#include "spec/spec.h"
#include "walks/unflatten.h"

namespace pydag {
namespace {

Result &result_of(nb::handle object) {
    if (!ResultBox::check(object)) fail(PyExc_TypeError, "expected a Result, got %U.", short_repr(object).ptr());
    return ResultBox::of(object);
}

}  // namespace

nb::object make_result(nb::handle spec, nb::handle leaves) {
    spec_of(spec);
    if (!PyTuple_CheckExact(leaves.ptr()) && !PyList_CheckExact(leaves.ptr()))
        fail(PyExc_TypeError, "the leaves must be a tuple or a list, got %U.", short_repr(leaves).ptr());
    return ResultBox::make(nb::borrow(spec), nb::borrow(leaves));
}

nb::object open_result(nb::handle object) {
    const Result &result = result_of(object);
    return tuple_of(nb::object(result.leaves), nb::object(result.spec));
}

nb::object build_result(nb::handle object) {
    if (!ResultBox::check(object)) return checked(PyObject_GetAttr(object.ptr(), constants.tree));
    const Result &result = result_of(object);
    const nb::object spec = result.spec, leaves = result.leaves;
    return unflatten(spec_of(spec).structure(), leaves);
}

}  // namespace pydag
