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
bool read_dict_fields(const Registration &registration, PyObject *dict, PyObject **values, PyObject **meta) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    for (const FieldPlace &field : registration.dict_order) {
        if (!PyDict_Next(dict, &position, &key, &value)) return false;
        if (key != field.name) return learn_order(registration, dict), false;
        (field.is_meta ? meta : values)[field.index] = value;
    }
    return true;
}

bool read_slots(PyObject *object, const std::vector<FieldAccess> &fields, PyObject **values) {
    for (const FieldAccess &field : fields) {
        if (field.offset && !(*values = peek_slot(object, field.offset))) return false;
        ++values;
    }
    return true;
}

// The fields that were named, in `__dict__` and in slots.
bool read_named(PyObject *object, const Registration &registration, PyObject **values, PyObject **meta) {
    if (!read_slots(object, registration.data_access, values) || !read_slots(object, registration.meta_access, meta))
        return false;
    if (registration.dict_order.empty()) return true;
    const nb::object dict = dict_of(object);
    return dict.is_valid() && read_dict_fields(registration, dict.ptr(), values, meta);
}

// Whether a key of a `__dict__` names the field. A string that isn't interned may be missed where
// the field is an ordinary attribute: then it is not found at all.
bool is_name_of(PyObject *key, const FieldAccess &field) {
    return field.name.ptr() == key ||
           (field.offset && is_exact_str(key) && PyUnicode_Compare(field.name.ptr(), key) == 0);
}

// All attributes but the meta fields: those in `__dict__`, then the `__slots__` members that are
// set. Calls `add(name, value, is_slot)`, which says whether to go on.
template <class Add>
bool read_all(PyObject *object, const Registration &registration, Add add, PyObject **meta) {
    const auto &fields = registration.meta_access;
    size_t num_meta = 0;
    if (Py_TYPE(object)->tp_dictoffset != 0) {
        const nb::object dict = dict_of(object);
        if (!dict.is_valid()) return false;
        Py_ssize_t position = 0;
        for (PyObject *key, *value; PyDict_Next(dict.ptr(), &position, &key, &value);) {
            size_t i = 0;
            while (i < fields.size() && !is_name_of(key, fields[i])) ++i;
            if (i < fields.size()) meta[i] = value, num_meta += fields[i].offset == 0;  // a slot hides the key
            else if (!add(key, value, false)) return false;
        }
    }
    for (const FieldAccess &slot : registration.slot_access)
        if (PyObject *const value = peek_slot(object, slot.offset))
            if (!add(slot.name.ptr(), value, true)) return false;
    for (const FieldAccess &field : fields) num_meta += field.offset != 0;
    return num_meta == fields.size() && read_slots(object, fields, meta);
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
    Buffer<PyObject *, 8> meta;
    PyObject **const found = meta.extend(registration.meta_access.size());
    if (refs[1] == registration.data.ptr()) [[likely]] {
        if (!read_named(object, registration, values, found)) return false;
    } else {
        const Keys &keys = KeysBox::of(refs[1]);
        uint32_t count = 0;
        const auto add = [&](PyObject *name, PyObject *value, bool) {
            if (count == keys.size() || name != keys.inserted_key(count)) return false;
            values[count++] = value;
            return true;
        };
        if (!registration.data.is_none() || !read_all(object, registration, add, found) || count != keys.size())
            return false;
    }
    return std::equal(found, found + meta.size(), &PyTuple_GET_ITEM(refs[2], 0));
}

PyObject **read_mapping(PyObject *dict, bool sorted, OpenOptions &options, Refs &refs) {
    const auto count = static_cast<size_t>(PyDict_GET_SIZE(dict));
    PyObject **const values = options.room.take(count);
    Py_ssize_t position = 0;
    PyObject *key, *value;
    if (PyDict_Next(dict, &position, &key, &value)) {
        PyObject *const guess = guess_keys(key, count, sorted);
        const bool may_fit = guess && (!sorted || has_order_of(KeysBox::of(guess), &options));
        if (may_fit && peek_mapping(KeysBox::of(guess), dict, values)) {
            refs.push_borrowed(guess);
            return values;
        }
    }
    PyObject **const names = options.room.take(2 * count), **const found = names + count;
    position = 0;
    for (size_t i = 0; i < count; ++i) {
        if (!PyDict_Next(dict, &position, &names[i], &found[i])) return nullptr;
        prefetch(names[i]), prefetch(found[i]);
    }
    if (!std::all_of(names, names + count, is_exact_str)) return nullptr;
    nb::object box = keys_of(names, count, sorted);
    if (!has_order_of(KeysBox::of(box), sorted ? &options : nullptr)) box = keys_of(names, count, false);
    const Keys &keys = KeysBox::of(box);
    for (uint32_t i = 0; i < count; ++i) values[keys.rank(i)] = found[i];
    options.room.give_back(names);
    refs.push_new(std::move(box));
    return values;
}

PyObject **read_fields(PyObject *object, PyObject *box, OpenOptions &options, Refs &refs) {
    const Registration &registration = RegistrationBox::of(box);
    if (!registration.is_plain) return nullptr;
    Buffer<PyObject *, 8> meta;
    PyObject **const found = meta.extend(registration.meta_access.size()), **values;
    nb::object keys;
    if (!registration.data.is_none()) {
        keys = registration.data;
        values = options.room.take(registration.data_access.size());
        if (!read_named(object, registration, values, found)) return nullptr;
    } else {
        Buffer<PyObject *, 16> names, items;
        size_t num_in_dict = 0;
        const auto add = [&](PyObject *name, PyObject *value, bool is_slot) {
            if (!is_exact_str(name)) return false;
            // A name that is both a slot and in `__dict__` is an error.
            for (size_t i = 0; is_slot && i < num_in_dict; ++i)
                if (PyUnicode_Compare(names[i], name) == 0) return false;
            names.push(name), items.push(value);
            num_in_dict += !is_slot;
            return true;
        };
        if (!read_all(object, registration, add, found)) return nullptr;
        const size_t count = names.size();
        keys = keys_of(names.data(), count, false);
        values = options.room.take(count);
        std::copy_n(items.data(), count, values);
    }
    refs.push_borrowed(box);
    refs.push_new(std::move(keys));
    refs.push_new(tuple_of(found, meta.size()));
    return values;
}

}  // namespace pydag::detail
