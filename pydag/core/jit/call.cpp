// SPDX-License-Identifier: Apache-2.0
#include "jit/call.h"

#include "base/constants.h"
#include "base/object_set.h"
#include "base/tuples.h"
#include "jit/plans.h"
#include "jit/ref_contents.h"
#include "jit/result.h"
#include "jit/update_plan.h"
#include "spec/spec_key.h"
#include "structure/compare.h"
#include "walks/flatten.h"
#include "walks/node_answers.h"

#include <algorithm>
#include <functional>

namespace pydag {
namespace {

// A function that was compiled ahead may be called with the description of a ref as a leaf.
bool may_read_refs(const CallPlan::Positions &refs, const Leaves &leaves, nb::handle access) {
    if (refs.empty()) return true;
    if (access.is_none()) return false;
    const RefAccess &how = RefAccessBox::of(access.ptr());
    const auto is_ref = [&](uint32_t position) { return how.is_ref(leaves[position]); };
    return std::all_of(refs.begin(), refs.end(), is_ref) && how.may_read();
}

bool fits(const CallPlan &plan, const Leaves &leaves, nb::handle access) {
    PyObject *const *const classes = &PyTuple_GET_ITEM(plan.classes.ptr(), 0);
    PyObject *const *const statics = &PyTuple_GET_ITEM(plan.statics.ptr(), 0);
    if (nb::len(plan.classes) != leaves.size()) [[unlikely]]
        return false;
    for (size_t i = 0; i < plan.static_positions.size(); ++i)
        if (leaves[plan.static_positions[i]] != statics[i]) return false;
    for (size_t i = 0; i < leaves.size(); ++i)
        if (as_object(Py_TYPE(leaves[i])) != classes[i]) return false;
    return may_read_refs(plan.refs, leaves, access);
}

// Reads the contents of refs. False if one isn't ordinary, or if one that the function would reuse has another owner.
bool read_contents(RefContents &contents, PyObject *box, nb::handle access, const Leaves &leaves) {
    CallPlan &plan = CallPlanBox::of(box);
    nb::tuple types = shared_copy(box, plan.types);
    const bool are_read = contents.read(leaves, RefAccessBox::of(access.ptr()), plan.has_devices, types);
    replace_shared(nb::handle(box), plan.types, std::move(types));
    return are_read && !contents.is_held_elsewhere(plan.written);
}

nb::object list_of(const Leaves &leaves, const CallPlan::Positions &positions) {
    nb::object list = checked(PyList_New(static_cast<Py_ssize_t>(positions.size())));
    for (size_t i = 0; i < positions.size(); ++i)
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), incref(leaves[positions[i]]));
    return list;
}

nb::object call_one_by_one(const CallPlan &plan, const Leaves &leaves) {
    Buffer<PyObject *, 40> arguments;
    for (const uint32_t position : plan.traced) arguments.push(leaves[position]);
    return call_array(plan.function, arguments.data(), arguments.size());
}

// Whether a function has returned the result itself. `access`: a RefAccess or None.
bool is_result_itself(nb::handle returned, nb::handle access) {
    if (PyTuple_CheckExact(returned.ptr()) || PyList_CheckExact(returned.ptr())) return true;
    return !access.is_none() && RefAccessBox::of(access.ptr()).is_array(returned.ptr());
}

nb::object built(nb::handle result, const Leaves &leaves, nb::handle access) {
    if (!holds_refs(result)) return build_result(result);
    const nb::handle new_ref = access.is_none() ? access : nb::handle(RefAccessBox::of(access).new_ref);
    return fill_result(result, tuple_of(leaves.data(), leaves.size()), new_ref);
}

using MakeArguments = std::function<nb::object()>;

// Passes the traced leaves, contents in the place of refs; writes the new contents, and then what the function updates
// in its arguments.
nb::object call_by(PyObject *box, nb::handle access, Leaves &leaves, const MakeArguments &make_arguments) {
    const CallPlan &plan = CallPlanBox::of(box);
    RefContents contents(plan.refs);
    if (!plan.refs.empty()) {
        if (!read_contents(contents, box, access, leaves)) return nb::borrow(Py_NotImplemented);
        contents.exchange(leaves);
    }
    if (!plan.copy.is_none()) copy_donated(leaves, plan.traced, plan.donated, plan.copy);
    nb::object returned = plan.in_lists ? call(plan.function, list_of(leaves, plan.kept), list_of(leaves, plan.donated))
                                        : call_one_by_one(plan, leaves);
    if (!plan.refs.empty()) contents.exchange(leaves);
    if (!plan.written.empty()) {
        const nb::object pair = std::move(returned);
        returned = nb::borrow(item_of(pair, 0));
        contents.write(plan.written, item_of(pair, 1));
    }
    if (is_result_itself(returned, access)) return returned;
    if (!UpdatedBox::check(returned)) return built(returned, leaves, access);
    const nb::object result = UpdatedBox::of(returned).result, arguments = make_arguments();
    return update_arguments(returned, arguments, built(result, leaves, access));
}

// The first plan that fits, borrowed from a tuple of plans; null if none does.
PyObject *find_plan(nb::handle plans, const Leaves &leaves, nb::handle access) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(plans.ptr()); ++i) {
        PyObject *const box = PyTuple_GET_ITEM(plans.ptr(), i);
        if (fits(CallPlanBox::of(box), leaves, access)) return box;
    }
    return nullptr;
}

// Calls the function by that plan, and builds what it returns. `make_arguments`: returns a tuple and a dict.
nb::object follow(nb::handle plans, const CallPlans &call_plans, Leaves &leaves, const MakeArguments &make_arguments) {
    const nb::object access = call_plans.access;
    PyObject *const box = find_plan(plans, leaves, access);
    if (!box) return nb::borrow(Py_NotImplemented);
    return call_by(box, access, leaves, make_arguments);
}

// Whether nodes give the same aux_data and names as when the structure was made, as far as compiled code can tell.
bool say_the_same(const Structure &structure, const OtherRefs &others) {
    return std::all_of(others.begin(), others.end(), [&](const OtherRef &other) {
        const nb::object before = nb::borrow(structure.all_refs()[other.index]);
        return are_interchangeable(before.ptr(), other.ref.ptr());
    });
}

FlattenOptions options_of(const CallPlans &plans) {
    FlattenOptions options = FlattenOptions::in(plans.namespace_, nullptr, plans.identity.ptr());
    options.asks_names = false;
    options.roots = Roots(constants.argument_names);
    return options;
}

// Whether trees still have the structure that they had at the last call.
bool holds(const CallPlans::Last &last, const FlattenOptions &options) {
    return last.spec.is_valid() && last.generation == cache_generation() && last.setting == options.setting();
}

// Flattens a tree into `leaves` if it has the structure of the last call. Else false, and `answers` has what its nodes
// answered.
bool flatten_as_last(const CallPlans::Last &last, nb::handle tree, const FlattenOptions &options, Leaves &leaves,
                     NodeAnswers &answers) {
    if (!holds(last, options)) return false;
    const nb::object spec = last.spec;  // owned, since a call within this one may replace `last`
    const Structure &structure = nb::inst_ptr<Spec>(spec)->structure_or_empty();
    if (!last.must_ask) return flatten_known(structure, tree.ptr(), options, leaves, nullptr);
    if (!flatten_asking(structure, tree.ptr(), options, leaves, nullptr, answers)) return false;
    if (say_the_same(structure, answers.other_refs)) return true;
    leaves.drop_to(0);
    return false;
}

// Calls the function with a tree whose structure need not be that of the last call.
nb::object call_any(nb::handle object, nb::handle tree, const FlattenOptions &options, NodeAnswers &answers) {
    CallPlans &plans = CallPlansBox::of(object);
    const uint64_t generation = cache_generation(), times_forgotten = plans.times_forgotten;
    Flattened parts(tree, options, nullptr, answers.empty() ? nullptr : &answers);
    nb::object spec = parts.take_spec();
    const nb::object found = plans_for(plans, SpecKeyBox::make(spec));
    if (!found.is_valid()) return nb::borrow(Py_NotImplemented);
    // The next call tries this structure first, even if it isn't a structure that the cache keeps: with objects of the
    // user's the cache would forget it together with this spec.
    if (nb::inst_ptr<Spec>(spec)->is_in_cache()) {
        const bool is_bare_call = is_bare(tree, spec_of(spec).structure());
        replace_shared(
            object, plans.last,
            {std::move(spec), found, generation, options.setting(), times_forgotten, parts.must_ask(), is_bare_call});
    }
    return follow(found, plans, parts.leaves(), [&] { return nb::borrow(tree); });
}

// Calls the function where all arguments are leaves, as they were in the last call.
nb::object follow_bare_plan(nb::handle object, CallArguments &arguments) {
    const CallPlans &plans = CallPlansBox::of(object);
    const CallPlans::Last last = shared_copy(object, plans.last);
    if (!last.is_bare) return nb::borrow(Py_NotImplemented);
    const FlattenOptions options = options_of(plans);
    if (last.times_forgotten != plans.times_forgotten || !holds(last, options) ||
        !are_bare_arguments(arguments, spec_of(last.spec).structure(), options))
        return nb::borrow(Py_NotImplemented);
    return follow(last.plans, plans, arguments.values, [&] { return tuple_of(arguments.args(), arguments.kwargs()); });
}

}  // namespace

void copy_donated(Leaves &leaves, const std::vector<uint32_t> &passed, const std::vector<uint32_t> &donated,
                  nb::handle copy) {
    ObjectSet met, repeated;
    for (const uint32_t position : passed)
        if (!met.add(leaves[position])) repeated.add(leaves[position]);
    for (const uint32_t position : donated)
        if (!repeated.add(leaves[position])) leaves.replace(position, call(copy, nb::handle(leaves[position])));
}

nb::object follow_plan(nb::handle object, CallArguments &arguments) {
    nb::object answer = follow_bare_plan(object, arguments);
    if (!answer.is(nb::handle(Py_NotImplemented))) return answer;
    return follow_plan(object, arguments.args(), arguments.kwargs());
}

nb::object follow_plan(nb::handle object, nb::handle args, nb::handle kwargs) {
    const CallPlans &plans = unboxed<CallPlansBox>(object);
    const FlattenOptions options = options_of(plans);
    const nb::object tree = tuple_of(nb::borrow(args), nb::borrow(kwargs));
    Leaves leaves;
    NodeAnswers answers;
    const MakeArguments arguments = [&] { return tree; };
    if constexpr (kFreeThreaded) {
        const CallPlans::Last last = shared_copy(object, plans.last);
        const bool is_known = last.times_forgotten == plans.times_forgotten;
        if (is_known && flatten_as_last(last, tree, options, leaves, answers))
            return follow(last.plans, plans, leaves, arguments);
    } else {
        const nb::object found = plans.last.plans;
        if (flatten_as_last(plans.last, tree, options, leaves, answers)) return follow(found, plans, leaves, arguments);
    }
    return call_any(object, tree, options, answers);
}

}  // namespace pydag
