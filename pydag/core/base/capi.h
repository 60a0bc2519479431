// SPDX-License-Identifier: Apache-2.0
//
// The CPython API with its errors checked. Only this file counts references by hand or asks for the version of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace nb = nanobind;
namespace pydag {

inline PyObject *incref(PyObject *object) {
    Py_INCREF(object);
    return object;
}
inline void decref(PyObject *object) { Py_DECREF(object); }
// Releases a reference to a class unless it is the last one. Returns whether it did. Free-threaded builds can't tell,
// but a Python class is in its own MRO, so only the collector ends it.
inline bool decref_unless_last(PyObject *type) {
#ifndef Py_GIL_DISABLED
    if (Py_REFCNT(type) <= 1) return false;
#endif
    Py_DECREF(type);
    return true;
}

// Whether threads may run at the same time: see base/threads.h.
#ifdef Py_GIL_DISABLED
inline constexpr bool kFreeThreaded = true;
#else
inline constexpr bool kFreeThreaded = false;
#endif
// A word that other threads may write meanwhile.
template <class T>
T load_shared(const T &word) {
#if defined(Py_GIL_DISABLED) && defined(__GNUC__)
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
#else
    return word;
#endif
}

// Spreads the bits of an address that differ between objects over the whole word, towards its top.
inline uint64_t hash_address(const void *address) {
    return (reinterpret_cast<uintptr_t>(address) >> 4) * 0x9E3779B97F4A7C15u;
}

// A new reference from a call that may have failed.
inline nb::object checked(PyObject *result) {
    if (!result) nb::raise_python_error();
    return nb::steal(result);
}

// The status, or the size, of a call that answers -1 on failure.
template <std::signed_integral Status>
Status checked(Status status) {
    if (status < 0) nb::raise_python_error();
    return status;
}

inline nb::object call_array(nb::handle function, PyObject *const *arguments, size_t count) {
    return checked(PyObject_Vectorcall(function.ptr(), arguments, count, nullptr));
}

template <class... Arguments>
nb::object call(nb::handle function, const Arguments &...arguments) {
    constexpr size_t kCount = sizeof...(arguments);
    PyObject *const array[kCount ? kCount : 1] = {arguments.ptr()...};
    return call_array(function, array, kCount);
}

inline bool is_exact_str(PyObject *object) { return PyUnicode_CheckExact(object); }
inline PyObject *as_object(PyTypeObject *type) { return reinterpret_cast<PyObject *>(type); }
// The class of an object, owned, since code may give the object another class.
inline nb::object class_of(nb::handle object) { return nb::borrow(as_object(Py_TYPE(object.ptr()))); }
inline bool is_heap_type(PyTypeObject *type) { return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE); }

// Hides a dict from gc.get_objects(). Only for a dict of constants, which is part of no cycle.
inline void hide_from_collector(nb::handle dict) {
    if (PyObject_GC_IsTracked(dict.ptr())) PyObject_GC_UnTrack(dict.ptr());
}
// A copy of a hidden dict. It isn't hidden itself, so anything may be put into it.
inline nb::object copy_hidden_dict(nb::handle dict) {
    nb::object copy = checked(PyDict_Copy(dict.ptr()));
#if PY_VERSION_HEX >= 0x030E0000  // before, a dict is tracked once it gets something that needs it
    if (!PyObject_GC_IsTracked(copy.ptr())) PyObject_GC_Track(copy.ptr());
#endif
    return copy;
}

// The class `frozendict`, which has dicts' layout and functions for reading; null in a Python that has none.
inline PyTypeObject *frozen_dict_type() {
#if PY_VERSION_HEX >= 0x030F00A7
    return &PyFrozenDict_Type;
#else
    return nullptr;
#endif
}
inline bool is_frozen_dict(PyObject *object) { return Py_TYPE(object) == frozen_dict_type(); }
// A frozendict of the items of a dict, in their order.
// GCOVR_EXCL_START: Python 3.15 has frozendicts
inline nb::object new_frozen_dict(nb::handle dict) {
    return checked(PyObject_CallOneArg(reinterpret_cast<PyObject *>(frozen_dict_type()), dict.ptr()));
}
// GCOVR_EXCL_STOP

// Whether two attribute names are the same text; `name` is an exact string. Runs no Python code.
inline bool is_same_name(PyObject *name, PyObject *other) {
    if (name == other) return true;
    if (!PyUnicode_Check(other) || (PyUnicode_CHECK_INTERNED(name) && PyUnicode_CHECK_INTERNED(other))) return false;
    return PyUnicode_Compare(name, other) == 0;
}
// The interned string of the same text; `text` is an exact string.
inline nb::object interned(PyObject *text) {
    PyObject *name = incref(text);
    PyUnicode_InternInPlace(&name);
    return nb::steal(name);
}

// The class's own attributes.
inline nb::object dict_of_class(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030C0000
    return checked(PyType_GetDict(type));
#else
    return nb::borrow(type->tp_dict);
#endif
}
// The class and those that it inherits from, in the order in which attributes are looked up: a tuple.
inline nb::object mro_of(PyTypeObject *type) {
#ifdef Py_GIL_DISABLED        // another thread may assign to `__bases__`
    PyObject *get = nullptr;  // `type` always has it: nobody can change the attributes of `type`
    checked(PyDict_GetItemStringRef(checked(PyType_GetDict(&PyType_Type)).ptr(), "__mro__", &get));
    const nb::object owned = nb::steal(get);
    return checked(Py_TYPE(get)->tp_descr_get(get, as_object(type), as_object(Py_TYPE(as_object(type)))));
#else
    return nb::borrow(type->tp_mro);
#endif
}
// Has calls of a Python function go to `entry`. Before Python 3.12 they run its code, as before.
inline void redirect_calls(PyObject *function, [[maybe_unused]] vectorcallfunc entry) {
#if PY_VERSION_HEX >= 0x030C0000
    PyFunction_SetVectorcall(reinterpret_cast<PyFunctionObject *>(function), entry);
#endif
}
// The value of a key of a dict, or null. Raises what the key's `__hash__` or `__eq__` raises.
inline nb::object find_in_dict(nb::handle dict, nb::handle key) {
#ifdef Py_GIL_DISABLED
    PyObject *found = nullptr;
    checked(PyDict_GetItemRef(dict.ptr(), key.ptr(), &found));
    return nb::steal(found);
#else
    nb::object found = nb::borrow(PyDict_GetItemWithError(dict.ptr(), key.ptr()));
    if (!found.is_valid() && PyErr_Occurred()) nb::raise_python_error();
    return found;
#endif
}
// A number that changes with each attribute of the class or of its bases. No two classes have ever had the same number.
// 0 if the class has none at the moment.
inline unsigned version_of(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030C0000
    return load_shared(type->tp_version_tag);
#else
    return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
#endif
}
// The same; a class that has none is given one if possible.
inline unsigned assign_version(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030C0000
    PyUnstable_Type_AssignVersionTag(type);
#else
    static PyObject *name;
    if (!name) name = PyUnicode_InternFromString("__doc__");
    if (name) _PyType_Lookup(type, name);
    PyErr_Clear();
#endif
    return version_of(type);
}
// Whether an object can be meant as a yes or no: None, or an instance of a class with a `__bool__`. Other objects are
// true by default or by their length.
inline bool has_truth(nb::handle object) {
    const PyNumberMethods *const methods = Py_TYPE(object.ptr())->tp_as_number;
    return object.is_none() || (methods && methods->nb_bool);
}

// An instance of a subclass of tuple, made by `tuple.__new__`. It takes the references of the items; on failure they
// stay with the caller.
inline nb::object tuple_of_class(PyTypeObject *type, PyObject *const *items, size_t count) {
#if PY_VERSION_HEX < 0x030E0000
    nb::object tuple = checked(type->tp_alloc(type, static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, items[i]);
    return tuple;
#else  // a tuple caches its hash, which only tuple's own function sets up
    nb::object plain = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(plain.ptr(), i, incref(items[i]));
    const nb::object arguments = checked(PyTuple_Pack(1, plain.ptr()));
    nb::object tuple = checked(PyTuple_Type.tp_new(type, arguments.ptr(), nullptr));
    for (size_t i = 0; i < count; ++i) decref(items[i]);
    return tuple;
#endif
}

// Whether there are just `count` references to `object`. Always false on free-threaded builds, which split the count
// between threads.
inline bool has_references(PyObject *object, Py_ssize_t count) {
#ifdef Py_GIL_DISABLED
    (void)object, (void)count;
    return false;
#else
    return Py_REFCNT(object) == count;
#endif
}

// Whether the interpreter calls a watcher when a dict changes. Before, each dict carries a version.
#if PY_VERSION_HEX >= 0x030C0000
#define PYDAG_HAS_DICT_WATCHERS
#endif

// Whether a collection of garbage may start in the middle of a C function.
inline constexpr bool kCollectsWithinCalls = PY_VERSION_HEX < 0x030C0000;

// A reference to an object that is there, but may be in the middle of being destroyed; null then. With the GIL only.
inline nb::object owned_if_alive(PyObject *object) { return Py_REFCNT(object) > 0 ? nb::borrow(object) : nb::object(); }

}  // namespace pydag
