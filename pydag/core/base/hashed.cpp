// SPDX-License-Identifier: Apache-2.0
#include "base/hashed.h"

#include "base/constants.h"

namespace pydag {
namespace {

Py_hash_t hash_of(PyObject *self) { return HashedBox::of(self).hash; }

PyObject *repr(PyObject *self) { return PyObject_CallOneArg(constants.bounded_repr, HashedBox::of(self).value.ptr()); }

PyObject *get_value(PyObject *self, void *) { return incref(HashedBox::of(self).value.ptr()); }

PyObject *get_num_calls(PyObject *self, void *) { return PyLong_FromSize_t(HashedBox::of(self).num_calls); }

PyGetSetDef properties[] = {
    {"value", get_value, nullptr, "The object.", nullptr},
    {"num_calls", get_num_calls, nullptr, "How many calls of a compiled function were made for this key.", nullptr},
    {nullptr}};

PyObject *note_call_of(PyObject *self, PyObject *) {
    note_call(self);
    return incref(Py_None);
}

PyMethodDef methods[] = {{"note_call", note_call_of, METH_NOARGS, "Counts a call that the core didn't make."},
                         {nullptr}};

}  // namespace

nb::object make_hashed(nb::handle value) {
    const Py_hash_t hash = PyObject_Hash(value.ptr());
    if (hash == -1) nb::raise_python_error();
    return HashedBox::make(nb::borrow(value), hash);
}

void make_hashed_type() {
    HashedBox::ready("pydag._core.Hashed", "An object as a key, whose hash is computed once. Equal to itself alone.",
                     {{Py_tp_hash, reinterpret_cast<void *>(hash_of)},
                      {Py_tp_repr, reinterpret_cast<void *>(repr)},
                      {Py_tp_getset, properties},
                      {Py_tp_methods, methods}});
}

}  // namespace pydag
