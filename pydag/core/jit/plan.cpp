// SPDX-License-Identifier: Apache-2.0
#include "jit/plan.h"

#include "base/constants.h"
#include "base/error.h"

#include <algorithm>

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
    if (plan.key.is_none() && (plan.function.is_none() || !plan.kept || (!plan.copy.is_none() && !plan.donated)))
        fail(PyExc_TypeError,
             "a plan without a key needs a function, what is kept, and what is donated if that is copied.");
    if (!plan.key.is_none() && plan.is_spread && (plan.function.is_none() || plan.donated || !plan.refs.empty()))
        fail(PyExc_TypeError, "a function of spread leaves takes none that are donated, and no refs.");
    if (plan.has_extras() && !plan.kept) fail(PyExc_TypeError, "a plan with extra results says what is kept.");
    const CallPlan::Positions none;
    const CallPlan::Positions &donated = plan.donated ? *plan.donated : none, &kept = plan.kept ? *plan.kept : none;
    for (const CallPlan::Positions *positions :
         std::initializer_list<const CallPlan::Positions *>{&plan.static_positions, &plan.refs, &donated, &kept})
        for (const uint32_t position : *positions)
            if (position >= nb::len(plan.classes)) fail(PyExc_IndexError, "there is no leaf %u", unsigned{position});
    require_order(plan.refs);
    require_order(plan.written);
    for (const uint32_t position : plan.written)
        if (!std::binary_search(plan.refs.begin(), plan.refs.end(), position))
            fail(PyExc_IndexError, "leaf %u is no ref", unsigned{position});
    plan.types = nb::borrow<nb::tuple>(constants.no_items);
    return CallPlanBox::make(std::move(plan));
}

}  // namespace pydag
