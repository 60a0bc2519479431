// SPDX-License-Identifier: Apache-2.0
#include "children.h"

#include "error.h"
#include "fields.h"
#include "items.h"

namespace pydag {
namespace detail {
namespace {

uint32_t push_mapping(PyObject *object, Items &items, nb::object keys, Stack &stack, RefLog &refs) {
    const uint32_t count = checked_count(object, static_cast<Py_ssize_t>(items.size()));
    items.push_values(KeysBox::of(keys), stack);
    refs.add_new(std::move(keys));
    return count;
}

void add_dict_items(PyObject *dict, Items &items) {
    items.reserve(static_cast<size_t>(PyDict_GET_SIZE(dict)));
    Py_ssize_t position = 0;
    for (PyObject *key, *value; PyDict_Next(dict, &position, &key, &value);) items.add(key, value);
}

}  // namespace

void fail_too_many_children(PyObject *object) {
    fail(PyExc_OverflowError, "a node can't have more than %zu children: %U", size_t{UINT32_MAX - 1},
         short_repr(reinterpret_cast<PyObject *>(Py_TYPE(object))).ptr());
}

nb::object default_factory_of(PyObject *dict) {
    static PyObject *const name = intern_forever("default_factory");
    return checked(PyObject_GetAttr(dict, name));
}

uint32_t open_deque(PyObject *deque, Stack &stack, RefLog &refs) {
    static PyObject *const name = intern_forever("maxlen");
    nb::object maxlen = checked(PyObject_GetAttr(deque, name));
    const nb::object items = checked(PySequence_List(deque));
    refs.add_new(std::move(maxlen));
    return push_items(deque, reinterpret_cast<PyListObject *>(items.ptr())->ob_item, PyList_GET_SIZE(items.ptr()),
                      stack);
}

// Pushes the values of a dict that has just these keys, confirmed one by one as it is read. False,
// and nothing pushed, for any other dict. Runs no Python code.
bool push_if_keys_are(const Keys &keys, PyObject *dict, Stack &stack) {
    const uint32_t count = keys.size();
    if (PyDict_GET_SIZE(dict) != static_cast<Py_ssize_t>(count)) return false;
    PyObject *const *const expected = &PyTuple_GET_ITEM(keys.inserted.ptr(), 0);
    PyObject **const slots = stack.extend(count);
    const uint32_t *const ranks = keys.ranks.get();
    Py_ssize_t position = 0;
    uint32_t i = 0;
    for (PyObject *key, *value; i < count && PyDict_Next(dict, &position, &key, &value); ++i) {
        if (key != expected[i]) [[unlikely]]
            break;
        slots[count - 1 - (ranks ? ranks[i] : i)] = incref(value);
    }
    if (i == count) [[likely]]
        return true;
    while (i-- > 0) decref(slots[count - 1 - keys.rank(i)]);
    stack.resize_down(stack.size() - count);
    return false;
}

// The keys that a dict probably has: those of the structure that is followed, else those that were
// remembered for its first key. Null where there is no guess.
PyObject *guess_keys_of(PyObject *dict, const RefLog &refs, bool sorted) {
    if (PyObject *const expected = refs.expected(); expected && KeysBox::check(expected)) return expected;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    if (!PyDict_Next(dict, &position, &key, &value) || !is_exact_str(key)) return nullptr;
    return guess_keys(key, static_cast<size_t>(PyDict_GET_SIZE(dict)), sorted);
}

uint32_t open_dict(PyObject *dict, OpenOptions &options, Stack &stack, RefLog &refs) {
    if (PyObject *const guess = guess_keys_of(dict, refs, true)) {
        const nb::object owned = options.insertion_ordered < 0 ? nb::borrow(guess) : nb::object();
        const Keys &keys = KeysBox::of(guess);
        // Where the two orders differ, it matters whether dicts are sorted here.
        const bool may_fit = keys.is_sorted && (keys.in_order() || !options.is_insertion_ordered());
        if (may_fit && push_if_keys_are(keys, dict, stack)) {
            refs.add(guess);
            return keys.size();
        }
    }
    Items items;
    add_dict_items(dict, items);
    nb::object keys = items.make_keys(true);
    if (!KeysBox::of(keys).in_order() && options.is_insertion_ordered()) keys = items.make_keys(false);
    return push_mapping(dict, items, std::move(keys), stack, refs);
}

// Whether an OrderedDict, whose dict has just these keys, also has them in this order: PyDict_Next
// gives the order of the dict underneath, which `move_to_end` leaves alone. The last key needs no
// look. The keys are exact strings, so no Python code runs.
bool is_in_order_of(const Keys &keys, PyObject *dict) {
    if (keys.size() <= 1) return true;
    const nb::object iterator = checked(PyObject_GetIter(dict));
    const iternextfunc next = Py_TYPE(iterator.ptr())->tp_iternext;
    for (uint32_t i = 0; i + 1 < keys.size(); ++i) {
        const nb::object key = nb::steal(next(iterator.ptr()));
        if (key.ptr() == keys.inserted_key(i)) [[likely]]
            continue;
        PyErr_Clear();
        return false;
    }
    return true;
}

uint32_t open_ordered_dict(PyObject *dict, Stack &stack, RefLog &refs) {
    if (const nb::object guess = nb::borrow(guess_keys_of(dict, refs, false)); guess.is_valid()) {
        const Keys &keys = KeysBox::of(guess);
        const size_t base = stack.size();
        if (keys.in_order() && keys.has_only_strings && push_if_keys_are(keys, dict, stack)) {
            if (is_in_order_of(keys, dict)) {
                refs.add(guess.ptr());
                return keys.size();
            }
            stack.drop_to(base);
        }
    }
    const nb::object iterator = checked(PyObject_GetIter(dict));
    Items items;
    items.own();
    while (PyObject *const key = PyIter_Next(iterator.ptr())) {
        nb::object owned = nb::steal(key);
        PyObject *const value = PyDict_GetItemWithError(dict, key);
        if (!value) {
            if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
            nb::raise_python_error();
        }
        items.add(owned.release().ptr(), incref(value));
    }
    if (PyErr_Occurred()) nb::raise_python_error();
    nb::object keys = items.make_unsorted_keys(refs);
    return push_mapping(dict, items, std::move(keys), stack, refs);
}

uint32_t open_custom(PyObject *object, PyObject *registration, Stack &stack, RefLog &refs) {
    const nb::object owned_registration = nb::borrow(registration);
    const nb::object flatten = RegistrationBox::of(registration).flatten;
    const nb::object parts = checked(PySequence_Tuple(call(flatten, nb::handle(object)).ptr()));
    const PyObject *const type = reinterpret_cast<PyObject *>(Py_TYPE(object));
    const Py_ssize_t size = PyTuple_GET_SIZE(parts.ptr());
    if (size != 2 && size != 3)
        fail(PyExc_RuntimeError, "PyTree custom flatten function for type %R should return a 2- or 3-tuple, got %zd.",
             type, size);
    PyObject *const children = PyTuple_GET_ITEM(parts.ptr(), 0);
    if (!Py_TYPE(children)->tp_iter && !PySequence_Check(children))
        fail(PyExc_TypeError,
             "Object of type '%.200s' is not an instance of 'iterable': the children that the flatten "
             "function for type %R returned",
             Py_TYPE(children)->tp_name, type);
    const nb::object items = checked(PySequence_Tuple(children));
    nb::object entries = nb::none();
    if (size == 3 && PyTuple_GET_ITEM(parts.ptr(), 2) != Py_None) {
        entries = checked(PySequence_Tuple(PyTuple_GET_ITEM(parts.ptr(), 2)));
        if (PyTuple_GET_SIZE(entries.ptr()) != PyTuple_GET_SIZE(items.ptr()))
            fail(PyExc_RuntimeError,
                 "PyTree custom flatten function for type %R returned inconsistent number of "
                 "children (%zd) and number of entries (%zd).",
                 type, PyTuple_GET_SIZE(items.ptr()), PyTuple_GET_SIZE(entries.ptr()));
    }
    refs.add(registration);
    refs.add(PyTuple_GET_ITEM(parts.ptr(), 1));
    refs.add_new(std::move(entries));
    return push_items(object, &PyTuple_GET_ITEM(items.ptr(), 0), PyTuple_GET_SIZE(items.ptr()), stack);
}

// The values of the meta fields: the tuple `expected`, if it holds just these.
nb::object read_meta(PyObject *object, const Registration &registration, PyObject *expected) {
    static PyObject *const empty = checked(PyTuple_New(0)).release().ptr();
    const size_t count = registration.meta_access.size();
    if (count == 0) return nb::borrow(empty);
    RefBuffer<8> values;
    bool is_expected =
        expected && PyTuple_CheckExact(expected) && PyTuple_GET_SIZE(expected) == static_cast<Py_ssize_t>(count);
    for (size_t i = 0; i < count; ++i) {
        values.push_new(read_field(object, registration.meta_access[i]));
        is_expected = is_expected && PyTuple_GET_ITEM(expected, i) == values[i];
    }
    return is_expected ? nb::borrow(expected) : values.take_tuple();
}

uint32_t open_fields(PyObject *object, PyObject *box, Stack &stack, RefLog &refs) {
    const nb::object owned_registration = nb::borrow(box);
    const Registration &registration = RegistrationBox::of(box);
    nb::object meta = read_meta(object, registration, refs.expected(2));

    if (!registration.data.is_none()) {
        const size_t count = registration.data_access.size();
        for (size_t i = count; i-- > 0;) stack.push_new(read_field(object, registration.data_access[i]));
        refs.add(box);
        refs.add(registration.data.ptr());
        refs.add_new(std::move(meta));
        return static_cast<uint32_t>(count);
    }

    // All attributes: those in `__dict__`, then the `__slots__` members that are set.
    Items items;
    nb::object dict;
    if (Py_TYPE(object)->tp_dictoffset != 0) {
        dict = checked(PyObject_GenericGetDict(object, nullptr));
        Py_ssize_t position = 0;
        for (PyObject *key, *value; PyDict_Next(dict.ptr(), &position, &key, &value);) {
            // Only exact strings are compared: another key's `__eq__` could change the dict.
            const bool is_meta = PyTuple_GET_SIZE(meta.ptr()) > 0 && is_exact_str(key) &&
                                 checked(PySequence_Contains(registration.meta_names.ptr(), key));
            if (!is_meta) items.add(key, value);
        }
    }
    for (const FieldAccess &slot : registration.slot_access)
        if (PyObject *const value = peek_slot(object, slot.offset)) {
            if (dict.is_valid() && checked(PyDict_Contains(dict.ptr(), slot.name.ptr())))
                fail(PyExc_ValueError, "%R of a %.200s is both a slot and in __dict__", slot.name.ptr(),
                     Py_TYPE(object)->tp_name);
            items.add(slot.name.ptr(), value);
        }
    nb::object keys = items.make_unsorted_keys(refs, 1);
    refs.add(box);
    const uint32_t count = push_mapping(object, items, std::move(keys), stack, refs);
    refs.add_new(std::move(meta));
    return count;
}

}  // namespace detail
}  // namespace pydag
