// SPDX-License-Identifier: Apache-2.0
#include "jit/plans.h"

#include "base/constants.h"
#include "base/error.h"
#include "jit/ref_contents.h"
#include "spec/spec_key.h"

#include <algorithm>
#include <iterator>

namespace pydag {
namespace {

constexpr size_t kMost = 64;  // for one structure: static values in rotation

// Removes a key that a dict has, or had until another thread removed it.
inline void drop_from_dict(nb::handle dict, nb::handle key) {
#ifdef Py_GIL_DISABLED
    checked(PyDict_Pop(dict.ptr(), key.ptr(), nullptr));
#else
    checked(PyDict_DelItem(dict.ptr(), key.ptr()));
#endif
}

// Whether two plans are for the same calls, as far as JAX's compiled code is concerned.
bool is_same_call(const CallPlan &plan, const CallPlan &other) {
    PyObject *const *const classes = &PyTuple_GET_ITEM(plan.classes.ptr(), 0);
    return plan.function.is(other.function) && nb::len(plan.classes) == nb::len(other.classes) &&
           std::equal(classes, classes + nb::len(plan.classes), &PyTuple_GET_ITEM(other.classes.ptr(), 0));
}

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

nb::object make_call_plans(nb::handle namespace_, nb::handle identity, nb::handle access) {
    if (!access.is_none()) unboxed<RefAccessBox>(access);
    FlattenOptions::in(namespace_, nullptr, identity.ptr());  // checks them
    return CallPlansBox::make(nb::borrow(namespace_), nb::borrow(identity), nb::borrow(access), checked(PyDict_New()),
                              make_static_leaves());
}

// Python code can find the dict through the garbage collector, and put anything into it.
nb::object plans_for(const CallPlans &plans, nb::handle spec_key) {
    nb::object found = find_in_dict(plans.by_key, spec_key);
    if (!found.is_valid() || !PyTuple_CheckExact(found.ptr())) return nb::object();
    PyObject *const *const items = &PyTuple_GET_ITEM(found.ptr(), 0);
    const auto is_plan = [](PyObject *item) { return item && CallPlanBox::check(item); };
    return std::all_of(items, items + PyTuple_GET_SIZE(found.ptr()), is_plan) ? found : nb::object();
}

void add_plan(nb::handle object, nb::handle spec_key, nb::handle added) {
    CallPlans &plans = unboxed<CallPlansBox>(object);
    const CallPlan &plan = unboxed<CallPlanBox>(added);
    const size_t num_leaves = spec_of(unboxed<SpecKeyBox>(spec_key).spec).structure().num_leaves;
    if (num_leaves != nb::len(plan.classes))
        fail(PyExc_IndexError, "a plan for %zu leaves, and the structure has %zu", nb::len(plan.classes), num_leaves);
    RefBuffer<kMost> kept;
    const nb::object before = plans_for(plans, spec_key);
    kept.push_borrowed(added.ptr());
    for (Py_ssize_t i = 0; before.is_valid() && i < PyTuple_GET_SIZE(before.ptr()); ++i) {
        PyObject *const other = PyTuple_GET_ITEM(before.ptr(), i);
        if (kept.size() < kMost && !is_same_call(plan, CallPlanBox::of(other))) kept.push_borrowed(other);
    }
    checked(PyDict_SetItem(plans.by_key.ptr(), spec_key.ptr(), kept.take_tuple().ptr()));
    replace_shared(object, plans.last, {});
}

void forget_plans(nb::handle object, nb::handle spec_key) {
    CallPlans &plans = unboxed<CallPlansBox>(object);
    if (spec_key.is_none()) {
        PyDict_Clear(plans.by_key.ptr());
        forget_static_leaves(plans.statics);
    } else if (plans_for(plans, spec_key).is_valid()) {
        drop_from_dict(plans.by_key, spec_key);
    }
    ++plans.times_forgotten;
    replace_shared(object, plans.last, {});
}

}  // namespace pydag
