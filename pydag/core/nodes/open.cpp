// SPDX-License-Identifier: Apache-2.0
#include "nodes/open.h"

#include "base/tuples.h"
#include "nodes/items.h"
#include "nodes/nodes.h"
#include "types/fields.h"

#include <algorithm>

namespace pydag {
namespace detail {
namespace {

uint32_t push_mapping(PyObject *object, Items &items, nb::object keys, Stack &stack, Refs &refs) {
    const uint32_t count = checked_count(object, static_cast<Py_ssize_t>(items.size()));
    items.push_values(KeysBox::of(keys), stack);
    refs.push_new(std::move(keys));
    return count;
}

// Adds what a dict holds; the items own it.
void add_dict_items(PyObject *dict, Items &items) {
    const Locked locked(dict);
    items.reserve(static_cast<size_t>(PyDict_GET_SIZE(dict)));
    Py_ssize_t position = 0;
    for (PyObject *key, *value; PyDict_Next(dict, &position, &key, &value);) items.add(key, value);
    items.own();
}

}  // namespace

// GCOVR_EXCL_START: no test has the memory for four billion children
void fail_too_many_children(PyObject *object) {
    fail(PyExc_OverflowError, "a node can't have more than %zu children: %U", size_t{UINT32_MAX - 1},
         short_repr(reinterpret_cast<PyObject *>(Py_TYPE(object))).ptr());
}
// GCOVR_EXCL_STOP

nb::object default_factory_of(PyObject *dict) { return checked(PyObject_GetAttr(dict, constants.default_factory)); }

uint32_t open_deque(PyObject *deque, Stack &stack, Refs &refs) {
    nb::object maxlen = checked(PyObject_GetAttr(deque, constants.maxlen));
    const nb::object items = items_of_deque(deque);
    refs.push_new(std::move(maxlen));
    const uint32_t count = checked_count(deque, PyList_GET_SIZE(items.ptr()));
    return push_items(reinterpret_cast<PyListObject *>(items.ptr())->ob_item, count, stack);
}

uint32_t open_dict(PyObject *dict, OpenOptions &options, Stack &stack, Refs &refs) {
    Items items;
    add_dict_items(dict, items);
    // Sorting runs comparisons of the keys, which keys that keep their order must not notice. Strings never do.
    const bool sorts = items.has_only_strings() || !options.ask_insertion_order();
    nb::object keys = items.make_keys(num_sorted_if(sorts, items.size()));
    if (!KeysBox::of(keys).in_order && options.ask_insertion_order()) keys = items.make_keys(0);
    return push_mapping(dict, items, std::move(keys), stack, refs);
}

uint32_t open_ordered_dict(PyObject *dict, Stack &stack, Refs &refs) {
    const nb::object iterator = checked(PyObject_GetIter(dict));
    Items items;
    items.own();
    while (PyObject *const key = PyIter_Next(iterator.ptr())) {
        nb::object owned = nb::steal(key);
        nb::object value = find_in_dict(dict, key);
        if (!value.is_valid()) {
            PyErr_SetObject(PyExc_KeyError, key);
            nb::raise_python_error();
        }
        items.add(owned.release().ptr(), value.release().ptr());
    }
    if (PyErr_Occurred()) nb::raise_python_error();
    nb::object keys = items.make_keys(0);
    return push_mapping(dict, items, std::move(keys), stack, refs);
}

PyObject **read_custom(PyObject *object, PyObject *box, OpenOptions &options, Refs &refs, uint32_t &count) {
    const Registration &registration = RegistrationBox::of(box);
    if (!registration.stand_in) return nullptr;
    StandIn::Opened opened;
    if (!registration.stand_in->open(object, options.arena, opened)) return nullptr;
    count = opened.count;
    options.owns_attributes = opened.owns_children && registration.has_identity;
    refs.push_borrowed(box);
    refs.push_new(std::move(opened.aux_data));
    refs.push_new(options.wants_entries ? std::move(opened.entries) : nb::none());
    return opened.children;
}

bool read_known_custom(PyObject *object, Node node, PyObject *const *refs, OpenOptions *options, PyObject **values) {
    const CustomRefs custom{refs};
    const Registration &registration = custom.registration();
    if (!registration.stand_in || !registration.type.is(as_object(Py_TYPE(object)))) return false;
    bool owns_children = false;
    if (!registration.stand_in->read_known(object, custom.aux_data(), node.count, values, owns_children)) return false;
    if (options) options->note_instance(owns_children && registration.has_identity, registration.leaves_are_values);
    return true;
}

uint32_t open_custom(PyObject *object, PyObject *registration, const OpenOptions &options, Stack &stack, Refs &refs) {
    refs.push_borrowed(registration);  // so that it is owned: the function may take it out of all tables
    FlattenResult result = ask_function(object, registration, options);
    refs.push_new(std::move(result.aux_data));
    refs.push_new(std::move(result.entries));
    return push_items(&PyTuple_GET_ITEM(result.children.ptr(), 0),
                      static_cast<uint32_t>(PyTuple_GET_SIZE(result.children.ptr())), stack);
}

// A set is copied: the object may change it, as pydantic's models do when one assigns to them.
nb::object read_meta(PyObject *object, const Registration &registration) {
    RefBuffer<8> values;
    for (const FieldAccess &field : registration.meta_access) {
        const nb::object value = read_field(object, field);
        values.push_new(PySet_CheckExact(value.ptr()) ? checked(PySet_New(value.ptr())) : nb::borrow(value));
    }
    return values.take_tuple();
}

namespace {

bool is_in_dict(const std::vector<FieldAccess> &fields, PyObject *name) {
    const auto is_it = [=](const FieldAccess &field) { return !field.offset && is_same_name(field.name.ptr(), name); };
    return std::any_of(fields.begin(), fields.end(), is_it);
}

// Checks that an instance has no attributes but the fields that were named: what is built would lose them.
void require_just_fields(PyObject *object, const Registration &registration) {
    const nb::object dict = checked(PyObject_GenericGetDict(object, nullptr));
    const nb::object names = checked(PySequence_Tuple(checked(PyDict_Keys(dict.ptr())).ptr()));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()); ++i) {
        PyObject *const name = PyTuple_GET_ITEM(names.ptr(), i);
        if (is_in_dict(registration.data_access, name) || is_in_dict(registration.meta_access, name) ||
            is_in_dict(registration.cached_access, name))
            continue;
        const nb::object type = class_of(object);
        fail(PyExc_ValueError,
             "a %.200s has the attribute %U, which is none of the fields of its class: an object that is built would "
             "lose it\n"
             "  Declare it as a field, or name it where the class is registered: in data_fields, or in meta_fields if "
             "it is configuration.",
             reinterpret_cast<PyTypeObject *>(type.ptr())->tp_name, short_repr(name).ptr());
    }
}

}  // namespace

uint32_t open_fields(PyObject *object, PyObject *box, Stack &stack, Refs &refs) {
    const nb::object owned_registration = nb::borrow(box);
    const Registration &registration = RegistrationBox::of(box);
    nb::object meta = read_meta(object, registration);
    if (!registration.is_foreign) require_no_arrays(registration, meta);

    if (!registration.data.is_none()) {
        const size_t count = registration.data_access.size();
        for (size_t i = count; i-- > 0;) stack.push_new(read_field(object, registration.data_access[i]));
        if (registration.must_have_just_fields() && Py_TYPE(object)->tp_dictoffset != 0)
            require_just_fields(object, registration);
        refs.push_borrowed(box);
        refs.push_borrowed(registration.data.ptr());
        refs.push_new(std::move(meta));
        return static_cast<uint32_t>(count);
    }

    // All attributes that aren't cached: those in `__dict__`, by name, then the `__slots__` members that are set. Keys
    // are not compared by their own `__eq__`, which could change the dict. If two keys have the text of one field,
    // neither is surely the field, and the object is refused.
    const auto index_in = [](const std::vector<FieldAccess> &fields, PyObject *name) {
        const auto is_it = [=](const FieldAccess &field) { return is_same_name(field.name.ptr(), name); };
        return static_cast<size_t>(std::find_if(fields.begin(), fields.end(), is_it) - fields.begin());
    };
    Items items;
    nb::object dict;
    if (Py_TYPE(object)->tp_dictoffset != 0) {
        dict = checked(PyObject_GenericGetDict(object, nullptr));
        const auto &slots = registration.slot_access, &fields = registration.meta_access,
                   &cached = registration.cached_access;
        std::vector<bool> is_met(fields.size());
        Py_ssize_t position = 0;
        const Locked locked(dict.ptr());
        for (PyObject *key, *value; PyDict_Next(dict.ptr(), &position, &key, &value);) {
            const size_t field = index_in(fields, key);
            if (index_in(slots, key) < slots.size())
                fail(PyExc_ValueError, "%R of a %.200s is both a slot and in __dict__",
                     checked(PyUnicode_FromObject(key)).ptr(), Py_TYPE(object)->tp_name);
            if (index_in(cached, key) < cached.size()) continue;
            if (field == fields.size()) items.add(key, value);
            else if (is_met[field])
                fail(PyExc_ValueError,
                     "two keys in the __dict__ of a %.200s have the text %R, which names a meta field\n"
                     "  One of them is of a subclass of str with an equality of its own: take it out.",
                     Py_TYPE(object)->tp_name, fields[field].name.ptr());
            else is_met[field] = true;
        }
        items.own();
    }
    items.own();
    const size_t num_in_dict = items.size();
    for (const FieldAccess &slot : registration.slot_access)
        if (nb::object value = owned_slot(object, slot.offset); value.is_valid())
            items.add(incref(slot.name.ptr()), value.release().ptr());
    nb::object keys = items.make_keys(num_in_dict);
    refs.push_borrowed(box);
    const uint32_t count = push_mapping(object, items, std::move(keys), stack, refs);
    refs.push_new(std::move(meta));
    return count;
}

}  // namespace detail
}  // namespace pydag
