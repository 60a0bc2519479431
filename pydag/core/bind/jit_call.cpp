// SPDX-License-Identifier: Apache-2.0
#include "bind/bind.h"
#include "bind/operation.h"
#include "jit/call.h"
#include "jit/caller.h"
#include "jit/plans.h"
#include "jit/ref_contents.h"
#include "jit/result.h"
#include "jit/update_plan.h"
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

nb::object static_leaf(nb::handle plans, nb::handle value) {
    nb::object leaf = find_static_leaf(unboxed<CallPlansBox>(plans).statics, value);
    return leaf.is_valid() ? leaf : nb::none();
}
void keep_static_leaf(nb::handle plans, nb::handle leaf) {
    add_static_leaf(unboxed<CallPlansBox>(plans).statics, leaf);
}

// One of the objects of each class, by the class's address: a class may compare as it likes, or not be hashable.
nb::object one_of_each_class(nb::handle given) {
    const nb::object objects = checked(PySequence_Tuple(given.ptr()));
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

// Where the objects of some classes stand, which are given by their addresses.
nb::object positions_of_classes(nb::handle given, nb::handle given_addresses) {
    const nb::object objects = checked(PySequence_Tuple(given.ptr()));
    std::vector<const PyTypeObject *> classes;
    const nb::object addresses = checked(PySequence_Tuple(given_addresses.ptr()));
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

// Whether two lists or tuples have the same objects.
bool are_same_objects(nb::handle first, nb::handle second) {
    if (!is_list_or_tuple(first) || !is_list_or_tuple(second))
        fail(PyExc_TypeError, "two lists or tuples, not %s and %s", Py_TYPE(first.ptr())->tp_name,
             Py_TYPE(second.ptr())->tp_name);
    PyObject *const *const items = PySequence_Fast_ITEMS(first.ptr());
    PyObject *const *const others = PySequence_Fast_ITEMS(second.ptr());
    return std::equal(items, items + PySequence_Fast_GET_SIZE(first.ptr()), others,
                      others + PySequence_Fast_GET_SIZE(second.ptr()));
}

// Whether values are the same to a compiled function, and a hash for such values: see types/values.h.
bool is_same(nb::handle value, nb::handle other) { return is_same_value(value, other, nullptr); }
uint64_t value_hash(nb::handle value) { return ValueHashes(nullptr).of(value); }

nb::object spec_key(nb::object spec) {
    spec_of(spec);
    return SpecKeyBox::make(std::move(spec));
}

// The leaves, with a copy in the place of each donated one that is there twice.
nb::object donated_apart(nb::list passed, CallPlan::Positions donated, nb::handle copy) {
    Leaves leaves;
    for (nb::handle leaf : passed) leaves.push_borrowed(leaf.ptr());
    CallPlan::Positions all(leaves.size());
    std::iota(all.begin(), all.end(), 0U);
    copy_donated(leaves, all, donated, copy);
    return leaves.take_list();
}

// As JAX builds its nodes: (aux_data, children).
nb::object build_updated(nb::handle, nb::handle parts) { return make_updated(parts); }
nb::object keep_plan(nb::object plan, nb::handle) { return plan; }

const Operation operations[] = {
    operation_of<make_result>("make_result"),
    operation_of<open_result>("open_result"),
    operation_of<build_result>("build_result"),
    operation_of<fill_result>("fill_result"),
    operation_of<holds_refs>("holds_refs"),
    operation_of<set_filled_class>("set_filled_class"),
    operation_of<make_ref_access>("ref_access"),
    operation_of<make_call_plans>("call_plans"),
    operation_of<add_plan>("add_plan"),
    operation_of<forget_plans>("forget_plans"),
    operation_of<static_leaf>("static_leaf"),
    operation_of<keep_static_leaf>("add_static_leaf"),
    operation_of<lead_calls_to_caller>("lead_calls_to_caller"),
    operation_of<one_of_each_class>("one_of_each_class"),
    operation_of<positions_of_classes>("positions_of_classes"),
    operation_of<are_same_objects>("are_same_objects"),
    operation_of<is_same>("is_same_value"),
    operation_of<value_hash>("value_hash"),
    operation_of<spec_key>("spec_key"),
    operation_of<donated_apart>("donated_apart"),
    operation_of<build_updated>("make_updated"),
    operation_of<keep_plan>("keep_plan"),
    operation_of<open_updated>("open_updated"),
    operation_of<carry_out>("carry_out"),
    operation_of<update_arguments>("update_arguments"),
};

template <class B>
void add_type(nb::module_ &module, const char *name, const char *doc) {
    B::ready(name, doc);
    module.attr(name + sizeof("pydag._core")) = B::type();
}

}  // namespace

void bind_jit_call(nb::module_ &module) {
    add_type<ResultBox>(module, "pydag._core.Result", "What a compiled function returns: a PyDagSpec and leaves.");
    add_type<RefAccessBox>(module, "pydag._core.RefAccess", "How the contents of JAX's refs are read and written.");
    add_type<CallPlanBox>(module, "pydag._core.CallPlan", "How calls of one structure go to a compiled function.");
    add_type<CallPlansBox>(module, "pydag._core.CallPlans",
                           "A compiled function, and what is remembered of its calls.");
    add_type<UpdatePlanBox>(module, "pydag._core.UpdatePlan", "What a compiled function changes in its arguments.");
    add_type<UpdatedBox>(module, "pydag._core.Updated", "What a function returns that changes its arguments.");
    make_jit_caller_type();
    module.attr("JitCaller") = JitCallerBox::type();
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
        "jit_caller",
        [](nb::object plans, nb::object unties, nb::object note_untie, nb::object places,
           std::vector<Py_ssize_t> static_numbers, nb::object static_names, nb::object run, nb::object recover) {
            return make_jit_caller({std::move(plans), std::move(unties), std::move(note_untie), std::move(places),
                                    std::move(static_names), std::move(run), std::move(recover),
                                    std::move(static_numbers)});
        },
        nb::kw_only(), nb::arg("plans"), nb::arg("unties"), nb::arg("note_untie"), nb::arg("places"),
        nb::arg("static_numbers"), nb::arg("static_names"), nb::arg("run"), nb::arg("recover"));
    module.def(
        "update_plan",
        [](nb::object spec, Positions positions, nb::object writers, Positions origins, nb::object returned,
           nb::object roots) {
            return make_update_plan({std::move(spec), std::move(positions), std::move(origins), std::move(writers),
                                     std::move(returned), std::move(roots)});
        },
        nb::kw_only(), nb::arg("spec"), nb::arg("positions"), nb::arg("writers").none(),
        nb::arg("origins") = Positions(), nb::arg("returned").none() = nb::none(), nb::arg("roots") = "tree");
    add_operations(module, operations);
    make_spec_key_type(module.attr("spec_key"));
    module.attr("SpecKey") = SpecKeyBox::type();
}

}  // namespace pydag
