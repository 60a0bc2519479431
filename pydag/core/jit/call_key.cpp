// SPDX-License-Identifier: Apache-2.0
#include "jit/call_key.h"

#include "base/constants.h"

namespace pydag {
namespace {

PyObject *repr(PyObject *self) { return PyObject_CallOneArg(constants.bounded_repr, CallKeyBox::of(self).value.ptr()); }

PyObject *get_value(PyObject *self, void *) { return incref(CallKeyBox::of(self).value.ptr()); }

PyObject *get_num_calls(PyObject *self, void *) { return PyLong_FromSize_t(CallKeyBox::of(self).num_calls); }

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

nb::object make_call_key(nb::handle value) { return CallKeyBox::make(nb::borrow(value)); }

void make_call_key_type() {
    CallKeyBox::ready(
        "pydag._core.CallKey", "What a function is compiled for. Equal to itself alone.",
        {{Py_tp_repr, reinterpret_cast<void *>(repr)}, {Py_tp_getset, properties}, {Py_tp_methods, methods}});
}

}  // namespace pydag
