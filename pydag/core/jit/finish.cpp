// SPDX-License-Identifier: Apache-2.0
#include "jit/finish.h"

#include "jit/ref_contents.h"
#include "jit/result.h"
#include "jit/update_plan.h"

namespace pydag {

bool is_result_itself(nb::handle returned, nb::handle access) {
    if (PyTuple_CheckExact(returned.ptr()) || PyList_CheckExact(returned.ptr())) return true;
    return !access.is_none() && RefAccessBox::of(access.ptr()).is_array(returned.ptr());
}

namespace {

nb::object built(nb::handle result, const std::function<nb::object()> &given, nb::handle access) {
    if (!holds_refs(result)) return build_result(result);
    return fill_result(result, given(), access.is_none() ? access : nb::handle(RefAccessBox::of(access.ptr()).new_ref));
}

}  // namespace

nb::object finished(nb::handle returned, const std::function<nb::object()> &given, nb::handle access,
                    const std::function<nb::object()> &tree) {
    if (!UpdatedBox::check(returned)) return built(returned, given, access);
    const nb::object result = UpdatedBox::of(returned).result, arguments = tree();
    nb::object found = built(result, given, access);
    return update_arguments(returned, arguments, std::move(found));
}

}  // namespace pydag
