// SPDX-License-Identifier: Apache-2.0
//
// Looks into the rarer nodes. Nothing here runs Python code: attributes are read by walking through
// the instance's dict, since looking one up could compare it with a hostile key.
#include "children.h"
#include "fields.h"

#include <algorithm>

namespace pydag::detail {
namespace {

// The `__dict__` of an instance; null where it has none, or where making it fails.
nb::object dict_of(PyObject *object) {
    nb::object dict = nb::steal(PyObject_GenericGetDict(object, nullptr));
    if (!dict.is_valid()) PyErr_Clear();
    return dict;
}

// Puts down the order in which an instance has the fields that are in its `__dict__`, for the next
// one. Instances of a class mostly agree in it.
void learn_order(const Registration &registration, PyObject *dict) {
    auto &order = registration.dict_order;
    size_t next = 0;
    Py_ssize_t position = 0;
    for (PyObject *key, *value; next < order.size() && PyDict_Next(dict, &position, &key, &value); ++next) {
        const auto is_key = [=](const FieldPlace &field) { return field.name == key; };
        const auto found = std::find_if(order.begin() + next, order.end(), is_key);
        if (found == order.end()) return;
        std::iter_swap(order.begin() + next, found);
    }
}

// False for an instance that has an attribute in another place than the last one had it, too.
bool peek_dict_fields(const Registration &registration, PyObject *dict, PyObject *meta, PyObject **values) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    for (const FieldPlace &field : registration.dict_order) {
        if (!PyDict_Next(dict, &position, &key, &value)) return false;
        if (key != field.name) return learn_order(registration, dict), false;
        if (!field.is_meta) values[field.index] = value;
        else if (PyTuple_GET_ITEM(meta, field.index) != value) return false;
    }
    return true;
}

// The fields that were named, in `__dict__` and in slots.
bool peek_named(PyObject *object, const Registration &registration, PyObject *meta, PyObject **values) {
    for (size_t i = 0; i < registration.data_access.size(); ++i)
        if (const Py_ssize_t offset = registration.data_access[i].offset)
            if (!(values[i] = peek_slot(object, offset))) return false;
    for (size_t i = 0; i < registration.meta_access.size(); ++i)
        if (const Py_ssize_t offset = registration.meta_access[i].offset)
            if (peek_slot(object, offset) != PyTuple_GET_ITEM(meta, i)) return false;
    if (registration.dict_order.empty()) return true;
    const nb::object dict = dict_of(object);
    return dict.is_valid() && peek_dict_fields(registration, dict.ptr(), meta, values);
}

// All attributes but the meta fields: those in `__dict__`, then the `__slots__` members that are set.
bool peek_all(PyObject *object, const Registration &registration, PyObject *const *refs, PyObject **values) {
    const Keys &keys = KeysBox::of(refs[1]);
    PyObject *const *const expected = &PyTuple_GET_ITEM(keys.inserted.ptr(), 0);
    const auto &meta = registration.meta_access;
    uint32_t count = 0;
    size_t num_meta = 0;
    if (Py_TYPE(object)->tp_dictoffset != 0) {
        const nb::object dict = dict_of(object);
        if (!dict.is_valid()) return false;
        Py_ssize_t position = 0;
        for (PyObject *key, *value; PyDict_Next(dict.ptr(), &position, &key, &value);) {
            if (count < keys.size() && key == expected[count]) {
                values[count++] = value;
                continue;
            }
            size_t i = 0;
            while (i < meta.size() && meta[i].name.ptr() != key) ++i;
            if (i == meta.size() || PyTuple_GET_ITEM(refs[2], i) != value) return false;
            ++num_meta;
        }
    }
    for (const FieldAccess &slot : registration.slot_access)
        if (PyObject *const value = peek_slot(object, slot.offset)) {
            if (count == keys.size() || slot.name.ptr() != expected[count]) return false;
            values[count++] = value;
        }
    for (size_t i = 0; i < meta.size(); ++i) {
        if (meta[i].offset == 0) continue;
        if (peek_slot(object, meta[i].offset) != PyTuple_GET_ITEM(refs[2], i)) return false;
        ++num_meta;
    }
    return count == keys.size() && num_meta == meta.size();
}

// Visits the keys of an OrderedDict as the collector does, until one differs from the expected one
// or `end` is reached.
struct KeyVisit {
    PyObject *const *next, *const *end;

    // Whether the dict's own links were seen to lead along just these keys.
    bool agrees(PyObject *ordered_dict) {
        const visitproc visit = [](PyObject *key, void *arg) -> int {
            KeyVisit &self = *static_cast<KeyVisit *>(arg);
            return self.next == self.end || key != *self.next || ++self.next == self.end;
        };
        PyODict_Type.tp_traverse(ordered_dict, visit, this);
        return next == end;
    }
};

// CPython visits the links of an OrderedDict in their order. Nobody promises that, so it is tried
// out, once; elsewhere an iterator has to be asked.
bool visits_in_order() {
    const nb::object dict = checked(PyODict_New());
    const char *const names[] = {"b", "a", "c"};
    for (const char *name : names) checked(PyODict_SetItem(dict.ptr(), nb::str(name).ptr(), Py_None));
    dict.attr("move_to_end")("a");
    const nb::object keys = checked(PySequence_Tuple(dict.ptr()));
    PyObject *const *const first = &PyTuple_GET_ITEM(keys.ptr(), 0);
    return KeyVisit{first, first + 3}.agrees(dict.ptr());
}

}  // namespace

// PyDict_Next gives the order of the dict underneath, which `move_to_end` leaves alone. The last
// key needs no look. The keys are exact strings, so no Python code runs.
bool is_in_order_of(const Keys &keys, PyObject *dict) {
    static const bool may_visit = visits_in_order();
    const uint32_t last = keys.size() - 1;
    if (keys.size() <= 1) return true;
    PyObject *const *const first = &PyTuple_GET_ITEM(keys.inserted.ptr(), 0);
    if (may_visit && KeyVisit{first, first + last}.agrees(dict)) return true;
    const nb::object iterator = checked(PyObject_GetIter(dict));
    const iternextfunc next = Py_TYPE(iterator.ptr())->tp_iternext;
    for (uint32_t i = 0; i < last; ++i) {
        const nb::object key = nb::steal(next(iterator.ptr()));
        if (key.ptr() == first[i]) [[likely]]
            continue;
        PyErr_Clear();
        return false;
    }
    return true;
}

bool peek_default_factory(PyObject *dict, PyObject *expected) { return default_factory_of(dict).is(expected); }

bool peek_deque(PyObject *deque, PyObject *maxlen, uint32_t count, PyObject **values) {
    static PyObject *const name = intern_forever("maxlen");
    const nb::object found = checked(PyObject_GetAttr(deque, name));
    // Both are None or exact integers.
    if (PyObject_Size(deque) != static_cast<Py_ssize_t>(count) ||
        !checked(PyObject_RichCompareBool(found.ptr(), maxlen, Py_EQ)))
        return false;
    const nb::object iterator = checked(PyObject_GetIter(deque));
    // The deque holds its items, so what the iterator gives may be let go at once.
    for (uint32_t i = 0; i < count; ++i) values[i] = checked(PyIter_Next(iterator.ptr())).ptr();
    return true;
}

bool peek_fields(PyObject *object, PyObject *const *refs, PyObject **values) {
    const Registration &registration = RegistrationBox::of(refs[0]);
    if (reinterpret_cast<PyObject *>(Py_TYPE(object)) != registration.type.ptr() || !registration.is_plain)
        return false;
    if (refs[1] == registration.data.ptr()) return peek_named(object, registration, refs[2], values);
    return registration.data.is_none() && peek_all(object, registration, refs, values);
}

}  // namespace pydag::detail
