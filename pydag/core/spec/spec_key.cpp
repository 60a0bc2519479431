// SPDX-License-Identifier: Apache-2.0
#include "spec/spec_key.h"

#include "base/tuples.h"

#include "base/error.h"
#include "spec/spec.h"

namespace pydag {
namespace {

PyObject *maker = nullptr;  // owned, for the life of the process

nb::object spec_in(nb::handle key) { return SpecKeyBox::of(key).spec; }

Py_hash_t hash_key(PyObject *self) {
    return slot<Py_hash_t>(-1, [&] { return spec_of(spec_in(self)).hash(); });
}

PyObject *compare_keys(PyObject *a, PyObject *b, int operation) {
    return slot<PyObject *>(nullptr, [&]() -> PyObject * {
        const bool is_equality = operation == Py_EQ || operation == Py_NE;
        if (!is_equality || !SpecKeyBox::check(b)) return incref(Py_NotImplemented);
        const nb::object first = spec_in(a), second = spec_in(b);
        const bool are_equal = first.is(second) || spec_of(first).is_interchangeable(spec_of(second));
        return incref(are_equal == (operation == Py_EQ) ? Py_True : Py_False);
    });
}

PyObject *repr_key(PyObject *self) {
    return slot<PyObject *>(nullptr, [&] {
        const nb::object spec = spec_in(self);
        if (checked(Py_ReprEnter(self))) return PyUnicode_FromString("SpecKey(...)");
        struct Leave {
            PyObject *object;
            ~Leave() { Py_ReprLeave(object); }
        } leave{self};
        return PyUnicode_FromFormat("SpecKey(%s)", spec_of(spec).text(SpecText::kWithOrders).c_str());
    });
}

PyObject *get_spec(PyObject *self, void *) {
    return slot<PyObject *>(nullptr, [&] { return spec_in(self).release().ptr(); });
}

PyObject *reduce_key(PyObject *self, PyObject *) {
    return slot<PyObject *>(nullptr,
                            [&] { return tuple_of(nb::borrow(maker), tuple_of(spec_in(self))).release().ptr(); });
}

PyGetSetDef properties[] = {{"spec", get_spec, nullptr, "The PyDagSpec.", nullptr}, {nullptr}};
PyMethodDef methods[] = {{"__reduce__", reduce_key, METH_NOARGS, nullptr}, {nullptr}};

}  // namespace

void make_spec_key_type(nb::object function) {
    maker = function.release().ptr();
    SpecKeyBox::ready(
        "pydag._core.SpecKey",
        "A PyDagSpec as a key: two are equal where a function could not tell the structures apart, so the "
        "order in which dicts were filled counts.",
        {{Py_tp_hash, reinterpret_cast<void *>(hash_key)},
         {Py_tp_richcompare, reinterpret_cast<void *>(compare_keys)},
         {Py_tp_repr, reinterpret_cast<void *>(repr_key)},
         {Py_tp_getset, properties},
         {Py_tp_methods, methods}});
}

}  // namespace pydag
