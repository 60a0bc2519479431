// SPDX-License-Identifier: Apache-2.0
#include "nodes/slot_stand_in.h"

#include "base/constant_size.h"
#include "base/constants.h"
#include "base/tuples.h"
#include "types/fields.h"

#include <structmember.h>

#include <algorithm>

namespace pydag {
namespace {

bool is_pair(PyObject *object) { return object && PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == 2; }
PyObject *item(PyObject *tuple, Py_ssize_t i) { return PyTuple_GET_ITEM(tuple, i); }

// Whether a dict has just these items, pairs of a key and a value that are the same objects.
bool has_items(PyObject *dict, PyObject *pairs, SlotStandIn::Order &order) {
    const Py_ssize_t size = PyTuple_GET_SIZE(pairs);
    if (!PyDict_CheckExact(dict) || PyDict_GET_SIZE(dict) != size) return false;
    Py_ssize_t position = 0, next = 0;
    for (PyObject *key, *value; PyDict_Next(dict, &position, &key, &value); ++next) {
        const auto is_it = [=](Py_ssize_t i) { return is_pair(item(pairs, i)) && item(item(pairs, i), 0) == key; };
        const bool is_guessed = static_cast<size_t>(next) < order.size();
        Py_ssize_t i = is_guessed ? order[static_cast<size_t>(next)] : 0;
        if (i >= size || !is_it(i))
            for (i = 0; i < size && !is_it(i); ++i) {
            }
        if (i == size || item(item(pairs, i), 1) != value) return false;
        if (is_guessed) order[static_cast<size_t>(next)] = static_cast<uint8_t>(std::min<Py_ssize_t>(i, UINT8_MAX));
    }
    return true;
}

// Null where a key is no exact string.
nb::object sorted_items(PyObject *dict) {
    struct Item {
        PyObject *key, *value;
    };
    Buffer<Item, 8> items;
    Py_ssize_t position = 0;
    for (PyObject *key, *value; PyDict_Next(dict, &position, &key, &value);) {
        if (!is_exact_str(key)) return nb::object();
        items.push({key, value});
    }
    std::sort(items.data(), items.data() + items.size(),
              [](const Item &a, const Item &b) { return PyUnicode_Compare(a.key, b.key) < 0; });
    nb::object pairs = checked(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    for (size_t i = 0; i < items.size(); ++i) {
        nb::object pair = tuple_of(nb::borrow(items[i].key), nb::borrow(items[i].value));
        PyTuple_SET_ITEM(pairs.ptr(), i, pair.release().ptr());
    }
    return pairs;
}

// Null where it is something else than pairs with strings as keys.
nb::object dict_of_items(PyObject *pairs) {
    nb::object dict = checked(PyDict_New());
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); ++i) {
        PyObject *const pair = item(pairs, i);
        if (!is_pair(pair) || !is_filled(pair) || !is_exact_str(item(pair, 0))) return nb::object();
        checked(PyDict_SetItem(dict.ptr(), item(pair, 0), item(pair, 1)));
    }
    return dict;
}

// Whether keeping this aux_data keeps nothing that is large or the user's.
bool is_constant(PyObject *aux_data) {
    constexpr Py_ssize_t kMost = 16;
    if (!PyTuple_CheckExact(aux_data)) return small_constant_size(aux_data) != 0;
    if (PyTuple_GET_SIZE(aux_data) > kMost) return false;
    PyObject *const *const items = &PyTuple_GET_ITEM(aux_data, 0);
    return std::all_of(items, items + PyTuple_GET_SIZE(aux_data), [](PyObject *part) { return is_constant(part); });
}

// Whether two objects are made of the same objects, or, down to this depth, of objects that are alike. False if that
// can't be told without running Python code.
bool are_alike(PyObject *a, PyObject *b, int depth) {
    if (a == b) return true;
    PyTypeObject *const type = Py_TYPE(a);
    if (depth == 0 || type != Py_TYPE(b) || !has_plain_layout(as_object(type))) return false;
    for (PyTypeObject *base = type; base && is_heap_type(base); base = base->tp_base)
        for (const PyMemberDef *member = base->tp_members; member && member->name; ++member) {
            PyObject *const x = read_slot(a, member->offset), *const y = read_slot(b, member->offset);
            if (x != y && (!x || !y || !are_alike(x, y, depth - 1))) return false;
        }
    if (type->tp_dictoffset == 0) return true;
    const nb::object x = nb::steal(PyObject_GenericGetDict(a, nullptr)),
                     y = nb::steal(PyObject_GenericGetDict(b, nullptr));
    if (!x.is_valid() || !y.is_valid() || PyDict_GET_SIZE(x.ptr()) != PyDict_GET_SIZE(y.ptr())) {
        PyErr_Clear();
        return false;
    }
    Py_ssize_t at = 0, other = 0;
    PyObject *key, *value, *other_key, *other_value;
    while (PyDict_Next(x.ptr(), &at, &key, &value))
        if (!PyDict_Next(y.ptr(), &other, &other_key, &other_value) || key != other_key || value != other_value)
            return false;
    return true;
}

}  // namespace

SlotStandIn::SlotStandIn(PyTypeObject *type, Slots slots) : slots_(std::move(slots)), version_(assign_version(type)) {}

bool SlotStandIn::is_of_this_version(PyTypeObject *type) const { return version_ != 0 && version_of(type) == version_; }

bool SlotStandIn::has(PyObject *object, PyObject *aux_data) {
    if (!PyTuple_CheckExact(aux_data)) return false;
    if (slots_.items) {
        PyObject *const dict = read_slot(object, slots_.items);
        return dict && has_items(dict, aux_data, order_);
    }
    if (PyTuple_GET_SIZE(aux_data) != static_cast<Py_ssize_t>(slots_.plain.size())) return false;
    for (size_t i = 0; i < slots_.plain.size(); ++i)
        if (read_slot(object, slots_.plain[i]) != item(aux_data, static_cast<Py_ssize_t>(i))) return false;
    return true;
}

// The aux_data of an instance; null if the library has to make it.
nb::object SlotStandIn::aux_data_of(PyObject *object) {
    if (last_aux_.is_valid() && has(object, last_aux_.ptr())) return last_aux_;
    nb::object made;
    if (slots_.items) {
        PyObject *const dict = read_slot(object, slots_.items);
        if (!dict || !PyDict_CheckExact(dict)) return nb::object();
        made = sorted_items(dict);
    } else {
        Buffer<PyObject *, 4> values;
        for (const Py_ssize_t offset : slots_.plain) {
            values.push(read_slot(object, offset));
            if (!values.back()) return nb::object();
        }
        made = tuple_of(values.data(), values.size());
    }
    if (made.is_valid() && is_constant(made.ptr())) last_aux_ = made;
    return made;
}

bool SlotStandIn::open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) {
    if (!is_of_this_version(Py_TYPE(object))) return false;
    PyObject *const child = slots_.child ? read_slot(object, slots_.child) : nullptr;
    if (slots_.child && !child) return false;
    opened.aux_data = aux_data_of(object);
    if (!opened.aux_data.is_valid()) return false;
    opened.count = child ? 1 : 0;
    opened.children = arena.take(opened.count);
    if (child) *opened.children = child;
    opened.entries = slots_.entries;
    opened.owns_children = true;
    return true;
}

bool SlotStandIn::read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children,
                             bool &owns_children) {
    if (!is_of_this_version(Py_TYPE(object)) || count != (slots_.child ? 1 : 0) || !has(object, aux_data)) return false;
    owns_children = true;
    return !slots_.child || (*children = read_slot(object, slots_.child));
}

nb::object SlotStandIn::build(const Registration &registration, PyObject *aux_data, PyObject *const *children,
                              uint32_t count, MadeOnce &once, bool is_trial) {
    const bool fits = (is_tried_ || is_trial) &&
                      is_of_this_version(reinterpret_cast<PyTypeObject *>(registration.type.ptr())) &&
                      count == (slots_.child ? 1 : 0) && PyTuple_CheckExact(aux_data) && is_filled(aux_data) &&
                      (slots_.items || PyTuple_GET_SIZE(aux_data) == static_cast<Py_ssize_t>(slots_.plain.size()));
    if (!fits) return nb::object();
    nb::object items = slots_.items ? dict_of_items(aux_data) : nb::none();
    if (!items.is_valid()) return nb::object();
    nb::object fresh = once.get(slots_.make_fresh), object = new_instance(registration);
    if (slots_.child) slot_at(object.ptr(), slots_.child) = incref(*children);
    if (slots_.items) slot_at(object.ptr(), slots_.items) = items.release().ptr();
    for (size_t i = 0; i < slots_.plain.size(); ++i)
        slot_at(object.ptr(), slots_.plain[i]) = incref(item(aux_data, static_cast<Py_ssize_t>(i)));
    slot_at(object.ptr(), slots_.fresh) = fresh.release().ptr();
    return object;
}

// The library may refuse a write, by comparing what `make_fresh` gave the instance with what it would give now. If
// both are alike, the library would agree, and isn't asked.
void SlotStandIn::write(PyObject *object, PyObject *, PyObject *const *children, uint32_t count, MadeOnce &once) {
    if (count == 0 || read_slot(object, slots_.child) == *children) return;
    const nb::object now = once.get(slots_.make_fresh), then = nb::borrow(read_slot(object, slots_.fresh));
    if (is_of_this_version(Py_TYPE(object)) && then.is_valid() && are_alike(then.ptr(), now.ptr(), 2))
        nb::steal(std::exchange(slot_at(object, slots_.child), incref(*children))).reset();
    else call(slots_.write, nb::handle(object), nb::handle(*children));
}

}  // namespace pydag
