// SPDX-License-Identifier: Apache-2.0
#include "base/tuples.h"
#include "nodes/open.h"

namespace pydag {
namespace {

nb::object names_to_ask_for(PyObject *box) {
    const Locked locked(box);
    return RegistrationBox::of(box).names;
}

// The name in a key; null if only Python code can find it. `plain` is `Registration::plain_keys`.
nb::object name_in(PyObject *key, const nb::object &plain) {
    for (Py_ssize_t i = 0; i + 2 < PyTuple_GET_SIZE(plain.ptr()); i += 3) {
        if (PyTuple_GET_ITEM(plain.ptr(), i) != as_object(Py_TYPE(key))) continue;
        nb::object name = checked(PyObject_GetAttr(key, PyTuple_GET_ITEM(plain.ptr(), i + 1)));
        if (PyTuple_GET_ITEM(plain.ptr(), i + 2) == as_object(Py_TYPE(name.ptr()))) return name;
    }
    return nb::object();
}

// Opens an instance by the function of its library that gives a key for each child. Null members if there is no such
// function, or if the keys aren't plain.
FlattenResult ask_with_keys(PyObject *object, PyObject *box) {
    nb::object open, plain;
    {
        const Locked locked(box);
        open = RegistrationBox::of(box).open_with_keys, plain = RegistrationBox::of(box).plain_keys;
    }
    if (!open.is_valid() || !plain.is_valid()) return {};
    const nb::object parts = call(open, nb::handle(object));
    if (!PyTuple_CheckExact(parts.ptr()) || PyTuple_GET_SIZE(parts.ptr()) != 2 || !is_filled(parts)) return {};
    const nb::object pairs = checked(PySequence_Tuple(PyTuple_GET_ITEM(parts.ptr(), 0)));
    const Py_ssize_t count = PyTuple_GET_SIZE(pairs.ptr());
    if (count == 0 || !is_filled(pairs)) return {};
    RefBuffer<8> names, children;  // no tuple is made before it is full: reading a name may run Python code
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *const pair = PyTuple_GET_ITEM(pairs.ptr(), i);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 || !is_filled(pair)) return {};
        nb::object name = name_in(PyTuple_GET_ITEM(pair, 0), plain);
        if (!name.is_valid()) return {};
        names.push_new(std::move(name));
        children.push_borrowed(PyTuple_GET_ITEM(pair, 1));
    }
    return {tuple_of(children.data(), children.size()), nb::borrow(PyTuple_GET_ITEM(parts.ptr(), 1)),
            tuple_of(names.data(), names.size())};
}

// The names that the library which registered a class gives to the children of an instance; or None.
nb::object names_of(PyObject *object, PyObject *registration, Py_ssize_t count, bool may_ask) {
    nb::object names = names_to_ask_for(registration);
    const bool are_known = names.is_valid() && (names.is_none() || PyTuple_CheckExact(names.ptr()));
    if (names.is_valid() && !are_known && may_ask) names = call(names, nb::handle(object), nb::int_(count));
    const bool fit = names.is_valid() && PyTuple_CheckExact(names.ptr()) && PyTuple_GET_SIZE(names.ptr()) == count;
    return fit ? names : nb::none();
}

}  // namespace

FlattenResult ask_function(PyObject *object, PyObject *registration, const OpenOptions &options) {
    const nb::object type = class_of(object);
    const Registration &known = RegistrationBox::of(registration);
    if (options.wants_entries && options.asks_names) {
        FlattenResult result = ask_with_keys(object, registration);
        if (result.children.is_valid()) {
            detail::checked_count(object, PyTuple_GET_SIZE(result.children.ptr()));
            return result;
        }
    }
    const nb::object flatten = known.library_flatten.is_valid() ? known.library_flatten : known.flatten;
    const nb::object parts = checked(PySequence_Tuple(call(flatten, nb::handle(object)).ptr()));
    const Py_ssize_t size = PyTuple_GET_SIZE(parts.ptr());
    if (size != 2 && size != 3)
        fail(PyExc_RuntimeError, "PyTree custom flatten function for type %R should return a 2- or 3-tuple, got %zd.",
             type.ptr(), size);
    if (!is_filled(parts)) fail_unfilled();
    PyObject *const children = PyTuple_GET_ITEM(parts.ptr(), 0);
    if (!Py_TYPE(children)->tp_iter && !PySequence_Check(children))
        fail(PyExc_TypeError,
             "Object of type '%.200s' is not an instance of 'iterable': the children that the flatten "
             "function for type %R returned",
             Py_TYPE(children)->tp_name, type.ptr());
    FlattenResult result = {checked(PySequence_Tuple(children)), nb::borrow(PyTuple_GET_ITEM(parts.ptr(), 1)),
                            nb::none()};
    const Py_ssize_t count = PyTuple_GET_SIZE(result.children.ptr());
    if (options.wants_entries && size == 3 && PyTuple_GET_ITEM(parts.ptr(), 2) != Py_None) {
        result.entries = checked(PySequence_Tuple(PyTuple_GET_ITEM(parts.ptr(), 2)));
        if (PyTuple_GET_SIZE(result.entries.ptr()) != count)
            fail(PyExc_RuntimeError,
                 "PyTree custom flatten function for type %R returned inconsistent number of "
                 "children (%zd) and number of entries (%zd).",
                 type.ptr(), count, PyTuple_GET_SIZE(result.entries.ptr()));
        if (!is_filled(result.entries)) fail_unfilled();
    } else if (options.wants_entries && count > 0) {
        result.entries = names_of(object, registration, count, options.asks_names);
    }
    detail::checked_count(object, count);
    if (!is_filled(result.children)) fail_unfilled();
    return result;
}

}  // namespace pydag
