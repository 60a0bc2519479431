// SPDX-License-Identifier: Apache-2.0
#include "jit/plan.h"

#include "base/constants.h"
#include "base/error.h"

#include <algorithm>
#include <iterator>

namespace pydag {
namespace {

void require_order(const CallPlan::Positions &positions) {
    if (!std::is_sorted(positions.begin(), positions.end()))
        fail(PyExc_ValueError, "the positions of refs must be in order");
}

}  // namespace

nb::object make_call_plan(CallPlan plan) {
    if (plan.static_positions.size() != nb::len(plan.statics))
        fail(PyExc_TypeError, "there are %zu positions for %U.", plan.static_positions.size(),
             short_repr(plan.statics).ptr());
    for (const CallPlan::Positions *positions : {&plan.static_positions, &plan.traced, &plan.donated, &plan.refs})
        for (const uint32_t position : *positions)
            if (position >= nb::len(plan.classes)) fail(PyExc_IndexError, "there is no leaf %u", unsigned{position});
    require_order(plan.refs);
    require_order(plan.written);
    for (const uint32_t position : plan.written)
        if (!std::binary_search(plan.refs.begin(), plan.refs.end(), position))
            fail(PyExc_IndexError, "leaf %u is no ref", unsigned{position});
    std::vector<bool> is_donated(nb::len(plan.classes));
    for (const uint32_t position : plan.donated) is_donated[position] = true;
    std::remove_copy_if(plan.traced.begin(), plan.traced.end(), std::back_inserter(plan.kept),
                        [&](uint32_t position) { return is_donated[position]; });
    plan.types = nb::borrow<nb::tuple>(constants.no_items);
    return CallPlanBox::make(std::move(plan));
}

}  // namespace pydag
