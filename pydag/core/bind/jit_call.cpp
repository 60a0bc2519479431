// SPDX-License-Identifier: Apache-2.0
#include "bind/bind.h"
#include "bind/operation.h"
#include "jit/call.h"
#include "jit/caller.h"
#include "jit/donation.h"
#include "jit/flag.h"
#include "jit/plans.h"
#include "jit/ref_contents.h"
#include "jit/result.h"
#include "spec/spec.h"
#include "spec/spec_key.h"
#include "types/values.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <vector>

namespace pydag {
namespace {

nb::object on_make_result(Arguments a) { return make_result(a[0], a[1]); }
nb::object on_open_result(Arguments a) { return open_result(a[0]); }
nb::object on_build_result(Arguments a) { return build_result(a[0]); }

nb::object on_make_ref_access(Arguments a) { return make_ref_access(a[0], a[1], a[2], a[3], a[4]); }
// (result, the caller's leaves, new_ref)
nb::object on_fill_result(Arguments a) { return fill_result(a[0], a[1], a[2]); }
nb::object on_holds_refs(Arguments a) { return nb::bool_(holds_refs(a[0])); }
// (namespace, identity, access)
nb::object on_make_call_plans(Arguments a) { return make_call_plans(a[0], a[1], a[2]); }
nb::object on_add_plan(Arguments a) { return add_plan(a[0], a[1], a[2]), nb::none(); }
nb::object on_forget_plans(Arguments a) { return forget_plans(a[0], a[1]), nb::none(); }
// (plans, value): its leaf, or None
nb::object on_static_leaf(Arguments a) {
    nb::object leaf = find_static_leaf(call_plans_of(a[0]).statics, a[1]);
    return leaf.is_valid() ? leaf : nb::none();
}
// (plans, leaf)
nb::object on_add_static_leaf(Arguments a) { return add_static_leaf(call_plans_of(a[0]).statics, a[1]), nb::none(); }
nb::object on_forget_static_leaves(Arguments a) {
    return forget_static_leaves(call_plans_of(a[0]).statics), nb::none();
}
nb::object on_make_flag(Arguments) { return FlagBox::make(); }
nb::object on_lead_calls(Arguments a) { return lead_calls_to_caller(a[0]), nb::none(); }

// One of the objects of each class, by the class's address: a class may compare as it likes, or not be hashable.
nb::object one_of_each_class(Arguments a) {
    const nb::object objects = checked(PySequence_Tuple(a[0]));
    nb::object found = checked(PyDict_New());
    std::array<const PyTypeObject *, 8> seen{};  // the latest, so that most objects need no look into the dict
    size_t oldest = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(objects.ptr()); ++i) {
        PyObject *const object = PyTuple_GET_ITEM(objects.ptr(), i);
        if (std::find(seen.begin(), seen.end(), Py_TYPE(object)) != seen.end()) continue;
        seen[oldest++ % seen.size()] = Py_TYPE(object);
        const nb::object key = checked(PyLong_FromVoidPtr(Py_TYPE(object)));
        checked(PyDict_SetItem(found.ptr(), key.ptr(), object));
    }
    return found;
}

// (objects, addresses of classes): where the objects of these classes stand.
nb::object positions_of_classes(Arguments a) {
    const nb::object objects = checked(PySequence_Tuple(a[0]));
    std::vector<const PyTypeObject *> classes;
    const nb::object addresses = checked(PySequence_Tuple(a[1]));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(addresses.ptr()); ++i) {
        classes.push_back(static_cast<const PyTypeObject *>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(addresses.ptr(), i))));
        if (PyErr_Occurred()) throw nb::python_error();
    }
    std::sort(classes.begin(), classes.end(), std::less<>());
    nb::object found = checked(PyList_New(0));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(objects.ptr()); ++i) {
        const PyTypeObject *const type = Py_TYPE(PyTuple_GET_ITEM(objects.ptr(), i));
        if (!std::binary_search(classes.begin(), classes.end(), type, std::less<>())) continue;
        const nb::object position = checked(PyLong_FromSsize_t(i));
        checked(PyList_Append(found.ptr(), position.ptr()));
    }
    return found;
}

bool is_list_or_tuple(nb::handle x) { return PyList_CheckExact(x.ptr()) || PyTuple_CheckExact(x.ptr()); }

// (objects, others): whether two lists or tuples have the same objects.
nb::object are_same_objects(Arguments a) {
    const nb::handle first = a[0], second = a[1];
    if (!is_list_or_tuple(first) || !is_list_or_tuple(second))
        fail(PyExc_TypeError, "two lists or tuples, not %s and %s", Py_TYPE(first.ptr())->tp_name,
             Py_TYPE(second.ptr())->tp_name);
    PyObject *const *const items = PySequence_Fast_ITEMS(first.ptr());
    PyObject *const *const others = PySequence_Fast_ITEMS(second.ptr());
    return nb::bool_(std::equal(items, items + PySequence_Fast_GET_SIZE(first.ptr()), others,
                                others + PySequence_Fast_GET_SIZE(second.ptr())));
}

// Whether values are the same to a compiled function, and a hash for such values: see types/values.h.
nb::object on_same_value(Arguments a) { return nb::bool_(is_same_value(a[0], a[1], nullptr)); }
nb::object on_value_hash(Arguments a) { return nb::int_(ValueHashes(nullptr).of(a[0])); }

nb::object spec_key(Arguments a) {
    spec_of(a[0]);
    return SpecKeyBox::make(nb::borrow(a[0]));
}

const Operation operations[] = {
    operation_of<2, on_make_result>("make_result"),
    operation_of<1, on_open_result>("open_result"),
    operation_of<1, on_build_result>("build_result"),
    operation_of<3, on_fill_result>("fill_result"),
    operation_of<1, on_holds_refs>("holds_refs"),
    operation_of<5, on_make_ref_access>("ref_access"),
    operation_of<3, on_make_call_plans>("call_plans"),
    operation_of<3, on_add_plan>("add_plan"),
    operation_of<2, on_forget_plans>("forget_plans"),
    operation_of<2, on_static_leaf>("static_leaf"),
    operation_of<2, on_add_static_leaf>("add_static_leaf"),
    operation_of<1, on_forget_static_leaves>("forget_static_leaves"),
    operation_of<0, on_make_flag>("flag"),
    operation_of<1, on_lead_calls>("lead_calls_to_caller"),
    operation_of<1, one_of_each_class>("one_of_each_class"),
    operation_of<2, positions_of_classes>("positions_of_classes"),
    operation_of<2, are_same_objects>("are_same_objects"),
    operation_of<2, on_same_value>("is_same_value"),
    operation_of<1, on_value_hash>("value_hash"),
    operation_of<1, spec_key>("spec_key"),
};

}  // namespace

void bind_jit_call(nb::module_ &module) {
    ResultBox::ready("pydag._core.Result", "What a compiled function returns: a PyDagSpec and leaves.");
    module.attr("Result") = ResultBox::type();
    RefAccessBox::ready("pydag._core.RefAccess", "How the contents of JAX's refs are read and written.");
    CallPlanBox::ready("pydag._core.CallPlan", "How calls of one structure go to a compiled function.");
    CallPlansBox::ready("pydag._core.CallPlans", "A compiled function, and what is remembered of its calls.");
    make_flag_type();
    module.attr("RefAccess") = RefAccessBox::type();
    module.attr("CallPlan") = CallPlanBox::type();
    module.attr("CallPlans") = CallPlansBox::type();
    module.attr("Flag") = FlagBox::type();
    using Positions = CallPlan::Positions;
    module.def(
        "call_plan",
        [](nb::tuple classes, Positions static_positions, nb::tuple statics, nb::object function, Positions traced,
           Positions donated, bool in_lists, nb::object copy, Positions refs, Positions written, bool has_devices) {
            return make_call_plan({std::move(classes), std::move(static_positions), std::move(statics),
                                   std::move(function), std::move(traced), std::move(donated), in_lists,
                                   std::move(copy), std::move(refs), std::move(written), has_devices});
        },
        nb::kw_only(), nb::arg("classes"), nb::arg("static_positions"), nb::arg("statics"), nb::arg("function"),
        nb::arg("traced"), nb::arg("donated") = Positions(), nb::arg("in_lists") = false, nb::arg("copy") = nb::none(),
        nb::arg("refs") = Positions(), nb::arg("written") = Positions(), nb::arg("has_devices") = true);
    module.def(
        "donated_apart",
        [](nb::list passed, Positions donated, nb::object copy) {
            Leaves leaves;
            for (nb::handle leaf : passed) leaves.push_borrowed(leaf.ptr());
            Positions all(leaves.size());
            std::iota(all.begin(), all.end(), 0U);
            copy_donated(leaves, all, donated, copy);
            return leaves.take_list();
        },
        nb::sig("def donated_apart(leaves: list[Any], donated: tuple[int, ...], copy: Callable[[Any], Any], /) -> "
                "list[Any]"));
    make_jit_caller_type();
    module.attr("JitCaller") = JitCallerBox::type();
    module.def(
        "jit_caller",
        [](nb::object plans, nb::object unties, nb::object note_untie, nb::object places,
           std::vector<Py_ssize_t> static_numbers, nb::object static_names, nb::object run, nb::object recover) {
            return make_jit_caller({std::move(plans), std::move(unties), std::move(note_untie), std::move(places),
                                    std::move(static_names), std::move(run), std::move(recover),
                                    std::move(static_numbers)});
        },
        nb::kw_only(), nb::arg("plans"), nb::arg("unties"), nb::arg("note_untie"), nb::arg("places"),
        nb::arg("static_numbers"), nb::arg("static_names"), nb::arg("run"), nb::arg("recover"));
    add_operations(module, operations, std::size(operations));
    make_spec_key_type(module.attr("spec_key"));
    module.attr("SpecKey") = SpecKeyBox::type();
}

}  // namespace pydag
