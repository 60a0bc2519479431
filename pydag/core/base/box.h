// SPDX-License-Identifier: Apache-2.0
//
// A C++ value inside a garbage-collected Python object, for the core's own records.
//
// The value lists its references once, as `auto python_refs()`; traverse is made from that list, so
// it can't forget a member. A value that owns more than a fixed list has a `traverse` of its own.
//
// As for a tuple, nothing is ever cleared: a record refers to what was there before it, and to
// strings, so every cycle through it also leads through an object that was changed later, and there
// the collector breaks it. A record that was cleared would be a trap for the spec that has it: what
// the collector releases meanwhile may run code that still uses the spec.
#pragma once

#include "base/capi.h"
#include "base/poison.h"

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
    // Makes the Python type, when the module is made for the first time. `more`: what else it can do.
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

    // The same of a value that is followed by memory for `count` items. The collector doesn't know it before
    // `track`; it need not, where no reference is part of a cycle.
    template <class... Arguments>
    static nb::object make_with_items(size_t count, Arguments &&...arguments) {
        Layout *const self = PyObject_GC_NewVar(Layout, type_, static_cast<Py_ssize_t>(count));
        if (!self) nb::raise_python_error();
        new (&self->value) Value{std::forward<Arguments>(arguments)...};
        poison(&self->value + 1, count * item_size());
        return nb::steal(reinterpret_cast<PyObject *>(self));
    }
    static void track(nb::handle object) { PyObject_GC_Track(object.ptr()); }

    static nb::handle type() { return reinterpret_cast<PyObject *>(type_); }
    static bool check(nb::handle object) { return Py_TYPE(object.ptr()) == type_; }
    static Value &of(nb::handle object) { return reinterpret_cast<Layout *>(object.ptr())->value; }

private:
    // How many bytes each item takes of a value that has items.
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
