// SPDX-License-Identifier: Apache-2.0
#include "jit/flag.h"

namespace pydag {
namespace {

PyObject *set(PyObject *box, PyObject *) {
    FlagBox::of(box).is_set = true;
    Py_RETURN_NONE;
}

PyObject *get_is_set(PyObject *box, void *) { return PyBool_FromLong(FlagBox::of(box).is_set); }

PyMethodDef methods[] = {{"set", set, METH_NOARGS, "From now on it is set."}, {nullptr}};
PyGetSetDef properties[] = {{"is_set", get_is_set, nullptr, nullptr, nullptr}, {nullptr}};

}  // namespace

void make_flag_type() {
    FlagBox::ready("pydag._core.Flag", "A flag that is set once.",
                   {{Py_tp_methods, methods}, {Py_tp_getset, properties}});
}

}  // namespace pydag
