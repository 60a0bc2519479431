// SPDX-License-Identifier: Apache-2.0
#include "bind/bind.h"
#include "bind/operation.h"
#include "jit/update_plan.h"

#include <nanobind/stl/vector.h>

namespace pydag {
namespace {

// As JAX builds its nodes: (aux_data, (result, plan, leaves)) and (plan, no children).
nb::object on_make_updated(Arguments a) { return make_updated(a[1]); }
nb::object on_keep_plan(Arguments a) { return nb::borrow(a[0]); }
nb::object on_open_updated(Arguments a) { return open_updated(a[0]); }
// (plan, tree, leaves)
nb::object on_carry_out(Arguments a) { return carry_out(a[0], a[1], a[2]), nb::none(); }
// (updated, arguments, result)
nb::object on_update_arguments(Arguments a) { return update_arguments(a[0], a[1], nb::borrow(a[2])); }

const Operation operations[] = {
    operation_of<2, on_make_updated>("make_updated"),         operation_of<2, on_keep_plan>("keep_plan"),
    operation_of<1, on_open_updated>("open_updated"),         operation_of<3, on_carry_out>("carry_out"),
    operation_of<3, on_update_arguments>("update_arguments"),
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
    add_operations(module, operations, std::size(operations));
}

}  // namespace pydag
