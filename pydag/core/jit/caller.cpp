// SPDX-License-Identifier: Apache-2.0
#include "jit/caller.h"

#include "base/buffer.h"
#include "base/constants.h"
#include "base/error.h"
#include "base/tuples.h"
#include "jit/call.h"

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
        nb::object dict = checked(PyDict_New());
        for (size_t i = 0; i < num_names(); ++i) checked(PyDict_SetItem(dict.ptr(), name(i), values[count + i]));
        return dict;
    }
};

bool is_plain(PyTypeObject *type) {
    return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyBytes_Type ||
           type == Py_TYPE(Py_None);
}

// For the value of a static argument the leaf that stands for it; null where none is known. Only values of plain
// classes, and tuples of them, are looked up by what they are equal to: that runs no code of the user's.
nb::object find_static(const JitCaller &caller, PyObject *value) {
    nb::object classes;
    if (is_plain(Py_TYPE(value))) {
        classes = class_of(value);
    } else if (PyTuple_CheckExact(value)) {
        const auto count = static_cast<size_t>(PyTuple_GET_SIZE(value));
        classes = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
        for (size_t i = 0; i < count; ++i) {
            PyTypeObject *const type = Py_TYPE(PyTuple_GET_ITEM(value, i));
            if (!is_plain(type)) {
                classes = nb::object();
                break;
            }
            PyTuple_SET_ITEM(classes.ptr(), i, incref(as_object(type)));
        }
    }
    if (classes.is_valid()) {
        const nb::object table = find_in_dict(caller.plain_statics, classes);
        return table.is_valid() && PyDict_CheckExact(table.ptr()) ? find_in_dict(table, value) : nb::object();
    }
    const nb::object known = find_in_dict(caller.known_statics, checked(PyLong_FromVoidPtr(value)));
    if (!known.is_valid() || !PyTuple_Check(known.ptr()) || PyTuple_GET_SIZE(known.ptr()) != 2) return nb::object();
    const nb::object leaf = nb::borrow(PyTuple_GET_ITEM(known.ptr(), 0)),
                     holds = nb::borrow(PyTuple_GET_ITEM(known.ptr(), 1));
    // A leaf owns its value, so no other object can have the id while the leaf lives.
    const bool is_it = checked(PyObject_GetAttr(leaf.ptr(), constants.value)).is(nb::handle(value));
    return is_it && (holds.is_none() || checked(PyObject_IsTrue(call(holds).ptr()))) ? leaf : nb::object();
}

// The positional arguments, with leaves for those that are static; null where one of these isn't known.
nb::object arranged_args(const JitCaller &caller, const Given &given) {
    nb::object args = given.args();
    for (Py_ssize_t number : caller.static_numbers) {
        if (number < 0) number += static_cast<Py_ssize_t>(given.count);
        if (number < 0 || number >= static_cast<Py_ssize_t>(given.count)) continue;
        nb::object leaf = find_static(caller, given.values[number]);
        if (!leaf.is_valid()) return leaf;
        PyObject *const replaced = PyTuple_GET_ITEM(args.ptr(), number);
        PyTuple_SET_ITEM(args.ptr(), number, leaf.release().ptr());
        decref(replaced);  // which `given` holds, too
    }
    return args;
}

// The keyword arguments in the order of the signature, likewise.
nb::object arranged_kwargs(const JitCaller &caller, const Given &given) {
    nb::object order = nb::borrow(given.names);
    const size_t count = given.num_names();
    if (count > 1) {
        const nb::object found = find_in_dict(caller.orders, given.names);
        if (!found.is_valid() || !PyTuple_CheckExact(found.ptr())) return nb::object();
        const auto size = static_cast<size_t>(PyTuple_GET_SIZE(found.ptr()));
        if (size == count) order = found;
        else if (size > 0) return nb::object();
    }
    nb::object kwargs = checked(PyDict_New());
    const bool has_static = PySet_GET_SIZE(caller.static_names.ptr()) > 0;
    for (size_t i = 0; i < count; ++i) {
        PyObject *const name = PyTuple_GET_ITEM(order.ptr(), i);
        size_t place = 0;
        while (place < count && !is_same_name(given.name(place), name)) ++place;
        if (place == count) return nb::object();
        nb::object value = nb::borrow(given.values[given.count + place]);
        if (has_static && checked(PySet_Contains(caller.static_names.ptr(), name))) {
            value = find_static(caller, value.ptr());
            if (!value.is_valid()) return value;
        }
        checked(PyDict_SetItem(kwargs.ptr(), name, value.ptr()));
    }
    return kwargs;
}

bool must_prepare(const JitCaller &caller) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(caller.reasons.ptr()); ++i)
        if (PyList_GET_SIZE(PyTuple_GET_ITEM(caller.reasons.ptr(), i)) > 0) return true;
    return false;
}

// NotImplemented where the core doesn't know enough.
nb::object call_by_recipe(const JitCaller &caller, const Given &given) {
    if (must_prepare(caller) && !checked(PyObject_IsTrue(call(caller.prepare).ptr())))
        return nb::borrow(Py_NotImplemented);
    const nb::object args = arranged_args(caller, given);
    if (!args.is_valid()) return nb::borrow(Py_NotImplemented);
    const nb::object kwargs = given.names ? arranged_kwargs(caller, given) : checked(PyDict_New());
    if (!kwargs.is_valid()) return nb::borrow(Py_NotImplemented);
    return call_flat(caller.flat_call, args, kwargs);
}

nb::object call_compiled(const JitCaller &caller, const Given &given) {
    nb::object answer;
    try {
        answer = call_by_recipe(caller, given);
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

// What the calls of a function come to.
PyObject *enter(PyObject *function, PyObject *const *values, size_t flags, PyObject *names) {
    PyObject *const closure = PyFunction_GET_CLOSURE(function);
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
    PyObject *const cell = closure ? item_or_null(closure, 0) : nullptr;
    // Anybody can put something else into the cell, and another thread may do it during the call.
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
    require(FlatCallBox::check(caller.flat_call), "a FlatCall");
    require(PyTuple_CheckExact(caller.reasons.ptr()), "a tuple of lists");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(caller.reasons.ptr()); ++i)
        require(PyList_CheckExact(PyTuple_GET_ITEM(caller.reasons.ptr(), i)), "a tuple of lists");
    require(PyFrozenSet_CheckExact(caller.static_names.ptr()), "a frozenset of names");
    for (const nb::object &dict : {caller.orders, caller.plain_statics, caller.known_statics})
        require(PyDict_CheckExact(dict.ptr()), "dicts");
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
