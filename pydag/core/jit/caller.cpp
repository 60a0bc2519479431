// SPDX-License-Identifier: Apache-2.0
#include "jit/caller.h"

#include "base/buffer.h"
#include "base/constants.h"
#include "base/error.h"
#include "base/tuples.h"
#include "jit/call.h"
#include "jit/plans.h"

#include <algorithm>

namespace pydag {
namespace {

// The arguments of a call, by CPython's convention: values by position, then values by keyword.
struct Given {
    PyObject *const *values;
    size_t count;     // of those by position
    PyObject *names;  // a tuple; null if there are none

    size_t num_names() const { return names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0; }
    PyObject *name(size_t i) const { return PyTuple_GET_ITEM(names, i); }
    nb::object args() const { return tuple_of(values, count); }
    nb::object kwargs() const {
        return names ? dict_of(&PyTuple_GET_ITEM(names, 0), values + count, num_names()) : checked(PyDict_New());
    }
};

// Takes the positional arguments, with leaves for the static ones. False if no leaf is known for one.
bool take_args(CallArguments &taken, const JitCaller &caller, const Given &given) {
    const StaticLeaves &statics = unboxed<CallPlansBox>(caller.plans).statics;
    taken.values.reserve(given.count + given.num_names());
    for (size_t i = 0; i < given.count; ++i) taken.values.push_borrowed(given.values[i]);
    for (Py_ssize_t number : caller.static_numbers) {
        if (number < 0) number += static_cast<Py_ssize_t>(given.count);
        if (number < 0 || number >= static_cast<Py_ssize_t>(given.count)) continue;
        nb::object leaf = find_static_leaf(statics, given.values[number]);
        if (!leaf.is_valid()) return false;
        taken.values.replace(static_cast<size_t>(number), std::move(leaf));
    }
    return true;
}

using Order = Buffer<size_t, 16>;

// Sorts the numbers of the keyword arguments by the signature, unless one isn't in it.
void sort_names(Order &order, const JitCaller &caller, const Given &given) {
    const size_t count = given.num_names();
    Buffer<Py_ssize_t, 16> places;
    for (size_t i = 0; i < count; ++i) {
        const nb::object place = find_in_dict(caller.places, given.name(i));
        if (!place.is_valid()) return;
        places.push(PyLong_AsSsize_t(place.ptr()));
    }
    if (PyErr_Occurred()) throw nb::python_error();
    std::sort(order.data(), order.data() + count, [&](size_t a, size_t b) { return places[a] < places[b]; });
}

// Takes the keyword arguments likewise.
bool take_kwargs(CallArguments &taken, const JitCaller &caller, const Given &given) {
    const bool has_static = PySet_GET_SIZE(caller.static_names.ptr()) > 0;
    Order order;
    for (size_t i = 0; i < given.num_names(); ++i) order.push(i);
    if (order.size() > 1) sort_names(order, caller, given);
    for (size_t i = 0; i < order.size(); ++i) {
        PyObject *const name = given.name(order[i]);
        nb::object value = nb::borrow(given.values[given.count + order[i]]);
        if (has_static && checked(PySet_Contains(caller.static_names.ptr(), name)))
            value = find_static_leaf(unboxed<CallPlansBox>(caller.plans).statics, value);
        if (!value.is_valid()) return false;
        taken.values.push_new(std::move(value));
        taken.names.push(name);
    }
    return true;
}

// NotImplemented if no plan fits.
nb::object call_by_plan(const JitCaller &caller, const Given &given) {
    if (PyList_GET_SIZE(caller.unties.ptr()) > 0) call(caller.note_untie);
    CallArguments taken;
    const bool are_taken = take_args(taken, caller, given) && take_kwargs(taken, caller, given);
    return are_taken ? follow_plan(caller.plans, taken) : nb::borrow(Py_NotImplemented);
}

nb::object call_compiled(const JitCaller &caller, const Given &given) {
    nb::object answer;
    try {
        answer = call_by_plan(caller, given);
    } catch (nb::python_error &error) {
        if (!error.matches(PyExc_Exception)) throw;
        answer = call(caller.recover, error.value(), given.args(), given.kwargs());
        if (answer.is(nb::handle(Py_NotImplemented))) throw;
        return answer;
    }
    if (!answer.is(nb::handle(Py_NotImplemented))) return answer;
    return call(caller.run, given.args(), given.kwargs());
}

PyObject *call_or_null(PyObject *box, const Given &given) {
    try {
        return call_compiled(JitCallerBox::of(box), given).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

// The entry of all calls of a function.
PyObject *enter(PyObject *function, PyObject *const *values, size_t flags, PyObject *names) {
    PyObject *const closure = PyFunction_GET_CLOSURE(function);
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
    PyObject *const cell = closure ? item_or_null(closure, 0) : nullptr;
    // Anybody can put another object into the cell, and another thread may do so during the call.
    const nb::object box = cell && PyCell_Check(cell) ? nb::steal(PyCell_Get(cell)) : nb::object();
    if (box.is_valid() && JitCallerBox::check(box)) return call_or_null(box.ptr(), {values, count, names});
    PyErr_SetString(PyExc_TypeError, "the closure of a function made by jit was changed");
    return nullptr;
}

// The same for a call of the box itself, by the function's own code.
PyObject *call_box(PyObject *box, PyObject *args, PyObject *kwargs) {
    try {
        Buffer<PyObject *, 24> values;
        const auto count = static_cast<size_t>(PyTuple_GET_SIZE(args));
        for (size_t i = 0; i < count; ++i) values.push(PyTuple_GET_ITEM(args, i));
        if (!kwargs || PyDict_GET_SIZE(kwargs) == 0) return call_or_null(box, {values.data(), count, nullptr});
        const nb::object names = checked(PySequence_Tuple(kwargs));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()); ++i)
            values.push(PyDict_GetItemWithError(kwargs, PyTuple_GET_ITEM(names.ptr(), i)));
        return call_or_null(box, {values.data(), count, names.ptr()});
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject *get_run(PyObject *box, void *) {
    PyObject *const run = JitCallerBox::of(box).run.ptr();
    return incref(run);
}

PyGetSetDef properties[] = {{"run", get_run, nullptr, "(args, kwargs): the call in Python.", nullptr}, {nullptr}};

void require(bool is_one, const char *what) {
    if (!is_one) fail(PyExc_TypeError, "a JitCaller needs %s.", what);
}

}  // namespace

nb::object make_jit_caller(JitCaller caller) {
    require(CallPlansBox::check(caller.plans), "CallPlans");
    require(PyList_CheckExact(caller.unties.ptr()), "a list of unties");
    require(PyDict_CheckExact(caller.places.ptr()), "a dict of places");
    require(PyFrozenSet_CheckExact(caller.static_names.ptr()), "a frozenset of names");
    caller.places = checked(PyDict_Copy(caller.places.ptr()));
    return JitCallerBox::make(std::move(caller));
}

void lead_calls_to_caller(nb::handle function) {
    require(PyFunction_Check(function.ptr()), "a function");
    redirect_calls(function.ptr(), enter);
}

void make_jit_caller_type() {
    JitCallerBox::ready("pydag._core.JitCaller", "Calls a compiled function.",
                        {{Py_tp_call, reinterpret_cast<void *>(call_box)}, {Py_tp_getset, properties}});
}

}  // namespace pydag
