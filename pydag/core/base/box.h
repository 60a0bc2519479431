// SPDX-License-Identifier: Apache-2.0
//
// A C++ value inside a garbage-collected Python object, for the core's own records.
//
// The value lists its references once, as `auto python_refs()`, or has a `traverse` of its own.
//
// As with a tuple, the collector never clears a record. It need not: a record refers only to strings and to older
// objects, so every cycle through it leads through an object that was changed later, and the collector breaks the cycle
// there. And it must not: what the collector releases may run code that uses a spec, and the spec uses its records.
#pragma once

#include "base/capi.h"
#include "base/memory.h"

#include <initializer_list>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace pydag {

template <class Value>
int traverse_refs(Value &value, visitproc visit, void *arg) {
    if constexpr (requires { value.traverse(visit, arg); }) return value.traverse(visit, arg);
    else
        return std::apply(
            [&](auto &...ref) {
                int status = 0;
                (void)((ref.is_valid() && (status = visit(ref.ptr(), arg)) != 0) || ...);
                return status;
            },
            value.python_refs());
}

template <class Value>
class Box {
public:
    // Makes the Python type when the module is made for the first time. `more`: further slots of the type.
    static void ready(const char *name, const char *doc, std::initializer_list<PyType_Slot> more = {}) {
        if (type_) return;
        std::vector<PyType_Slot> slots = {
            {Py_tp_doc, const_cast<char *>(doc)},
            {Py_tp_dealloc, reinterpret_cast<void *>(+[](PyObject *self) {
                 PyTypeObject *const type = Py_TYPE(self);
                 PyObject_GC_UnTrack(self);
                 of(self).~Value();
                 PyObject_GC_Del(self);
                 decref(reinterpret_cast<PyObject *>(type));
             })},
            {Py_tp_traverse, reinterpret_cast<void *>(+[](PyObject *self, visitproc visit, void *arg) {
                 if (const int status = visit(reinterpret_cast<PyObject *>(Py_TYPE(self)), arg)) return status;
                 return traverse_refs(of(self), visit, arg);
             })},
            {Py_tp_clear, reinterpret_cast<void *>(+[](PyObject *) { return 0; })},
        };
        slots.insert(slots.end(), more);
        slots.push_back({0, nullptr});
        PyType_Spec spec = {
            name, sizeof(Layout), item_size(),
            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
            slots.data()};
        type_ = reinterpret_cast<PyTypeObject *>(checked(PyType_FromSpec(&spec)).release().ptr());
    }

    template <class... Arguments>
    static nb::object make(Arguments &&...arguments) {
        Layout *const self = PyObject_GC_New(Layout, type_);
        if (!self) nb::raise_python_error();
        new (&self->value) Value{std::forward<Arguments>(arguments)...};
        PyObject_GC_Track(reinterpret_cast<PyObject *>(self));
        return nb::steal(reinterpret_cast<PyObject *>(self));
    }

    // The same for a value that is followed by memory for `count` items. The collector doesn't know the object
    // until `track` is called; a value whose references can't be part of a cycle never needs that call.
    template <class... Arguments>
    static nb::object make_with_items(size_t count, Arguments &&...arguments) {
        Layout *const self = PyObject_GC_NewVar(Layout, type_, static_cast<Py_ssize_t>(count));
        if (!self) nb::raise_python_error();
        new (&self->value) Value{std::forward<Arguments>(arguments)...};
        poison(&self->value + 1, count * item_size());
        return nb::steal(reinterpret_cast<PyObject *>(self));
    }
    static void track(nb::handle object) { PyObject_GC_Track(object.ptr()); }

    static const char *name() { return type_->tp_name; }
    static nb::handle type() { return reinterpret_cast<PyObject *>(type_); }
    static bool check(nb::handle object) { return Py_TYPE(object.ptr()) == type_; }
    static Value &of(nb::handle object) { return reinterpret_cast<Layout *>(object.ptr())->value; }

private:
    // How many bytes one item takes, for a value that has items; else 0.
    static constexpr size_t item_size() {
        if constexpr (requires { Value::kItemSize; }) return Value::kItemSize;
        else return 0;
    }
    struct Layout {
        std::conditional_t<item_size() == 0, PyObject, PyVarObject> ob_base;
        Value value;
    };
    static inline PyTypeObject *type_ = nullptr;
};

}  // namespace pydag
