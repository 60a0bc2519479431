// SPDX-License-Identifier: Apache-2.0
#include "bind/bind.h"
#include "bind/operation.h"
#include "jit/update_plan.h"

#include <nanobind/stl/vector.h>

namespace pydag {
namespace {

// As JAX builds its nodes: (aux_data, children).
nb::object build_updated(nb::handle, nb::handle parts) { return make_updated(parts); }
nb::object keep_plan(nb::object plan, nb::handle) { return plan; }

const Operation operations[] = {
    operation_of<build_updated>("make_updated"),        operation_of<keep_plan>("keep_plan"),
    operation_of<open_updated>("open_updated"),         operation_of<carry_out>("carry_out"),
    operation_of<update_arguments>("update_arguments"),
};

}  // namespace

void bind_updates(nb::module_ &module) {
    make_update_types();
    module.attr("UpdatePlan") = UpdatePlanBox::type();
    module.attr("Updated") = UpdatedBox::type();
    using Positions = UpdatePlan::Positions;
    module.def(
        "update_plan",
        [](nb::object spec, Positions positions, nb::object writers, nb::object returned, nb::object roots) {
            return make_update_plan(
                {std::move(spec), std::move(positions), std::move(writers), std::move(returned), std::move(roots)});
        },
        nb::kw_only(), nb::arg("spec"), nb::arg("positions"), nb::arg("writers").none(),
        nb::arg("returned").none() = nb::none(), nb::arg("roots") = "tree");
    add_operations(module, operations);
}

}  // namespace pydag
