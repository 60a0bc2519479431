// SPDX-License-Identifier: Apache-2.0
#include "types/taken_names.h"

#include "base/threads.h"

namespace pydag {
namespace {

// Whether an attribute of this type lets an assignment pass, now and later: a class that can be
// changed may be given a `__set__`, and an instance of it another class.
bool lets_pass(PyTypeObject *type) {
    const bool is_fixed = !is_heap_type(type) || PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE);
    return is_fixed && !type->tp_descr_set && !PyType_IsSubtype(type, &PyModule_Type);
}

}  // namespace

bool TakenNames::is_listed(PyObject *name) const {
    if (version_ == 0) return true;
    for (const nb::object &taken : names_)
        if (taken.is(name)) return true;
    return false;
}

void TakenNames::search(PyTypeObject *type) {
    version_ = 0;
    mask_ = ~uint64_t{0};
    names_.clear();
    const unsigned version = assign_version(type);
    if (version == 0) return;
    uint64_t mask = 0;
    const nb::object bases = mro_of(type);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases.ptr()); ++i) {
        const nb::object attributes = dict_of_class(reinterpret_cast<PyTypeObject *>(PyTuple_GET_ITEM(bases.ptr(), i)));
        const Locked locked(attributes.ptr());
        Py_ssize_t position = 0;
        for (PyObject *key, *value; PyDict_Next(attributes.ptr(), &position, &key, &value);) {
            if (!is_exact_str(key)) return;  // its own `__eq__` decides which names are equal to it
            if (lets_pass(Py_TYPE(value))) continue;
            names_.push_back(interned(key));
            mask |= bit(names_.back().ptr());
        }
    }
    version_ = version;
    mask_ = mask;
}

}  // namespace pydag
