// SPDX-License-Identifier: Apache-2.0
//
// The least that work on a tree could be: walk dicts, lists and tuples, collect the leaves' addresses, build new
// containers. No structure, no identity, no order of keys, no care for callbacks. What it takes is the limit against
// which the benchmarks hold pydag's functions.

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

constexpr size_t kMostTrees = 4;

// A tree like the first one, with what the function says of the leaves at each place. Without one it is a copy.
struct Build {
    PyObject *function;  // null for a copy
    size_t count;        // of the trees

    PyObject *run(PyObject *const *trees) const {
        PyObject *const first = trees[0];
        if (PyDict_Check(first)) return dict(trees);
        if (PyTuple_Check(first)) return tuple(trees);
        if (PyList_Check(first)) return list(trees);
        if (first == Py_None || !function) return Py_NewRef(first);
        return PyObject_Vectorcall(function, trees, count, nullptr);
    }

    // Keys and leaves are copied at once: only what differs is set again.
    PyObject *dict(PyObject *const *trees) const {
        PyObject *const made = PyDict_Copy(trees[0]);
        PyObject *key = nullptr, *value = nullptr, *children[kMostTrees];
        for (Py_ssize_t position = 0; made && PyDict_Next(trees[0], &position, &key, &value);) {
            children[0] = value;
            for (size_t i = 1; i < count; ++i) children[i] = PyDict_GetItemWithError(trees[i], key);
            PyObject *const child = run(children);
            if (!child || (child != value && PyDict_SetItem(made, key, child) < 0)) {
                Py_XDECREF(child);
                Py_DECREF(made);
                return nullptr;
            }
            Py_DECREF(child);
        }
        return made;
    }

    PyObject *tuple(PyObject *const *trees) const {
        const Py_ssize_t size = PyTuple_GET_SIZE(trees[0]);
        PyObject *const made =
            PyTuple_CheckExact(trees[0]) ? PyTuple_New(size) : Py_TYPE(trees[0])->tp_alloc(Py_TYPE(trees[0]), size);
        return filled(made, trees, size, [](PyObject *object, Py_ssize_t i) { return &PyTuple_GET_ITEM(object, i); });
    }

    PyObject *list(PyObject *const *trees) const {
        const Py_ssize_t size = PyList_GET_SIZE(trees[0]);
        const auto item = [](PyObject *object, Py_ssize_t i) {
            return &reinterpret_cast<PyListObject *>(object)->ob_item[i];
        };
        return filled(PyList_New(size), trees, size, item);
    }

    template <class Item>
    PyObject *filled(PyObject *made, PyObject *const *trees, Py_ssize_t size, Item item) const {
        PyObject *children[kMostTrees];
        for (Py_ssize_t i = 0; made && i < size; ++i) {
            for (size_t tree = 0; tree < count; ++tree) children[tree] = *item(trees[tree], i);
            PyObject *const child = run(children);
            if (!child) {
                Py_DECREF(made);
                return nullptr;
            }
            *item(made, i) = child;
        }
        return made;
    }
};

PyObject *copied(PyObject * /*module*/, PyObject *tree) { return Build{nullptr, 1}.run(&tree); }

// The function, and at most four trees of one structure.
PyObject *mapped(PyObject * /*module*/, PyObject *const *arguments, Py_ssize_t count) {
    const auto trees = static_cast<size_t>(count - 1);
    if (count < 2 || trees > kMostTrees) return PyErr_Format(PyExc_TypeError, "expected a function and a few trees");
    return Build{arguments[0], trees}.run(arguments + 1);
}

PyMethodDef methods[] = {
    {"count_leaves", count_leaves, METH_O, "The number of leaves, None not counted."},
    {"copied", copied, METH_O, "The tree with new containers."},
    {"mapped", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(mapped)), METH_FASTCALL,
     "A tree of what the function says of the leaves of trees."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bare_walk", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_bare_walk() { return PyModule_Create(&definition); }
