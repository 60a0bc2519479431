// SPDX-License-Identifier: Apache-2.0
#include "jit/call_key.h"

#include "base/constants.h"

namespace pydag {
namespace {

PyObject *repr(PyObject *self) { return PyObject_CallOneArg(constants.bounded_repr, CallKeyBox::of(self).value.ptr()); }

PyObject *get_value(PyObject *self, void *) { return incref(CallKeyBox::of(self).value.ptr()); }

PyGetSetDef properties[] = {{"value", get_value, nullptr, "The object.", nullptr}, {nullptr}};

}  // namespace

nb::object make_call_key(nb::handle value) { return CallKeyBox::make(nb::borrow(value)); }

void make_call_key_type() {
    CallKeyBox::ready("pydag._core.CallKey", "What a function is compiled for. Equal to itself alone.",
                      {{Py_tp_repr, reinterpret_cast<void *>(repr)}, {Py_tp_getset, properties}});
}

}  // namespace pydag
