// SPDX-License-Identifier: Apache-2.0
#include "walks/class_functions.h"

#include "base/error.h"

namespace pydag {
namespace {

constexpr uint32_t kNoFunction = UINT32_MAX - 1;

}  // namespace

ClassFunctions::ClassFunctions(nb::handle given, const char *name) {
    if (PyDict_Check(given.ptr()) || (!PyCallable_Check(given.ptr()) && nb::hasattr(given, "items"))) {
        const nb::object items = checked(PyList_AsTuple(checked(PyMapping_Items(given.ptr())).ptr()));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i) {
            PyObject *const item = PyTuple_GET_ITEM(items.ptr(), i);
            const bool is_pair = item && PyTuple_Check(item) && PyTuple_GET_SIZE(item) == 2;
            if (!is_pair || !PyTuple_GET_ITEM(item, 0) || !PyTuple_GET_ITEM(item, 1))
                fail(PyExc_TypeError, "the items() of a mapping must be pairs");
            add(PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1), name);
        }
        return;
    }
    if (!PyCallable_Check(given.ptr()))
        fail(PyExc_TypeError,
             "%s must be a function, or a mapping from classes to functions, got %U.\n  It comes before the tree.",
             name, short_repr(given).ptr());
    functions_.push_borrowed(given.ptr());
    last_ = given.ptr();
    is_one_for_all_ = true;
}

void ClassFunctions::add(PyObject *cls, PyObject *function, const char *name) {
    if (!PyType_Check(cls))
        fail(PyExc_TypeError,
             "the keys of %s must be classes, got %U.\n  The function, or the mapping of classes, comes before the "
             "tree.",
             name, short_repr(cls).ptr());
    if (!PyCallable_Check(function))
        fail(PyExc_TypeError, "%s has for the class %U no function, but %U.", name, short_repr(cls).ptr(),
             short_repr(function).ptr());
    classes_.push_borrowed(cls);
    functions_.push_borrowed(function);
    by_class_.find_or_add(cls, static_cast<uint32_t>(functions_.size() - 1));
}

PyObject *ClassFunctions::find_by_class(PyTypeObject *type) {
    PyObject *const key = reinterpret_cast<PyObject *>(type);
    uint32_t found = by_type_.find(key);
    if (found == IdentityTable::kNew) {
        found = kNoFunction;
        const nb::object owned_mro = mro_of(type);
        PyObject *const mro = owned_mro.ptr();
        for (Py_ssize_t i = 0; mro && found == kNoFunction && i < PyTuple_GET_SIZE(mro); ++i)
            if (const uint32_t known = by_class_.find(PyTuple_GET_ITEM(mro, i)); known != IdentityTable::kNew)
                found = known;
        types_.push_borrowed(key);  // an object may get another class while the walk goes on
        by_type_.find_or_add(key, found);
    }
    last_type_ = type;
    return last_ = found == kNoFunction ? nullptr : functions_[found];
}

void ClassFunctions::fail_missing(PyObject *object) const {
    constexpr size_t kMost = 20;
    std::string classes;
    for (size_t i = 0; i < std::min(classes_.size(), kMost); ++i) {
        if (i > 0) classes += ", ";
        classes += std::string(reinterpret_cast<PyTypeObject *>(classes_[i])->tp_name).substr(0, 50);
    }
    if (classes_.size() > kMost) classes += ", and " + std::to_string(classes_.size() - kMost) + " more";
    fail(PyExc_TypeError,
         "there is no function for the class %.200s\n  classes that have one: %s\n"
         "  Add the class, one that it derives from, or `object`, which stands for all others.",
         Py_TYPE(object)->tp_name, classes.empty() ? "none" : classes.c_str());
}

}  // namespace pydag
