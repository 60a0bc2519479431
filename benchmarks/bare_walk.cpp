// SPDX-License-Identifier: Apache-2.0
//
// The least that a flatten could do: walk dicts, lists and tuples and collect the leaves'
// addresses. No structure, no identity, no order of keys, no references, no care for callbacks.
// What it takes is the limit against which the benchmarks hold pydag's flatten.

#include <Python.h>

#include <vector>

namespace {

void walk(PyObject *object, std::vector<PyObject *> &leaves) {
    if (PyDict_Check(object)) {
        Py_ssize_t position = 0;
        PyObject *value = nullptr;
        while (PyDict_Next(object, &position, nullptr, &value)) walk(value, leaves);
    } else if (PyTuple_Check(object)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) walk(PyTuple_GET_ITEM(object, i), leaves);
    } else if (PyList_Check(object)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) walk(PyList_GET_ITEM(object, i), leaves);
    } else if (object != Py_None) {
        leaves.push_back(object);
    }
}

PyObject *count_leaves(PyObject * /*module*/, PyObject *tree) {
    std::vector<PyObject *> leaves;
    walk(tree, leaves);
    return PyLong_FromSize_t(leaves.size());
}

PyMethodDef methods[] = {
    {"count_leaves", count_leaves, METH_O, "The number of leaves, None not counted."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bare_walk", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_bare_walk() { return PyModule_Create(&definition); }
