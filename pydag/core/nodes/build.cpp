// SPDX-License-Identifier: Apache-2.0
#include "nodes/build.h"

#include "base/error.h"
#include "base/tuples.h"
#include "structure/paths.h"
#include "types/fields.h"
#include "types/keys.h"

#include <algorithm>

namespace pydag::detail {
namespace {

// The hash or the equality of a key may have changed since the keys were read.
void check_size(PyObject *dict, Py_ssize_t expected) {
    if (PyDict_GET_SIZE(dict) != expected) [[unlikely]]
        fail(PyExc_ValueError,
             "%zd keys made a dict of %zd: a key's hash or what it is equal to has changed since it was flattened\n"
             "  Keys must not change while they are in a dict.",
             expected, PyDict_GET_SIZE(dict));
}

// A new dict for these keys. For many keys it costs less to copy a dict that has them than to grow one.
nb::object new_dict(Keys &keys) {
    constexpr uint32_t kMostWithoutGrowth = 5;
    if (keys.size() <= kMostWithoutGrowth || !keys.has_constant_hashes || !keys.dict_template.may_use())
        return checked(PyDict_New());
    nb::object &known = keys.dict_template.dict;
    if (!known.is_valid()) {
        nb::object filled = checked(PyDict_New());
        for (uint32_t i = 0; i < keys.size(); ++i) checked(PyDict_SetItem(filled.ptr(), keys.inserted_key(i), Py_None));
        hide_from_collector(filled);
        known = std::move(filled);
    }
    return copy_hidden_dict(known);
}

nb::object fill_dict(const Keys &keys, nb::object dict, Stack &values, size_t base) {
    for (uint32_t i = 0; i < keys.count; ++i)
        checked(PyDict_SetItem(dict.ptr(), keys.inserted_key(i), values[base + keys.rank(i)]));
    check_size(dict.ptr(), static_cast<Py_ssize_t>(keys.count));
    values.drop_to(base);
    return dict;
}

bool is_none(PyObject *object) { return object == Py_None; }

// Checks that None is where None was given: the function may have put something else there, such as a default. A class
// that opens only what isn't None has fewer children then.
void require_nones(PyObject *const *refs, nb::handle built, const nb::object &given) {
    const CustomRefs custom{refs};
    const nb::object type = class_of(built);
    if (!type.is(custom.registration().type)) return;  // nothing is known of how it is opened
    OpenOptions options{nullptr};
    options.wants_entries = false;
    const nb::object found = ask_function(built.ptr(), custom.registration_box(), options).children;
    PyObject *const *const children = &PyTuple_GET_ITEM(given.ptr(), 0);
    PyObject *const *const opened = &PyTuple_GET_ITEM(found.ptr(), 0);
    const Py_ssize_t count = PyTuple_GET_SIZE(given.ptr()), num_opened = PyTuple_GET_SIZE(found.ptr());
    if (num_opened == count - std::count_if(children, children + count, is_none)) return;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!is_none(children[i]) || (num_opened == count && is_none(opened[i]))) continue;
        const nb::object step = step_text(step_of(Kind::kCustom, refs, static_cast<uint32_t>(i)));
        const nb::object held = num_opened == count ? short_repr(opened[i]) : nb::str("another number of children");
        fail(PyExc_TypeError,
             "None was put at %U of a %.200s, and the class makes something else of it when it is built: %U\n"
             "  Let its unflatten function build past the constructor (object.__new__, then the attributes); or "
             "register the class by its fields (pydag.register_fields).",
             step.ptr(), reinterpret_cast<PyTypeObject *>(type.ptr())->tp_name, held.ptr());
    }
}

bool is_mutable_set(PyObject *value) { return PySet_CheckExact(value); }

// The values of meta fields for a new object: a set is copied, so that it doesn't change with the structure.
nb::object own_values(PyObject *const *meta, size_t count) {
    RefBuffer<8> values;
    for (size_t i = 0; i < count; ++i)
        values.push_new(is_mutable_set(meta[i]) ? checked(PySet_New(meta[i])) : nb::borrow(meta[i]));
    return values.take_tuple();
}

}  // namespace

nb::object build_dict(PyObject *const *refs, Stack &values, size_t base) {
    Keys &keys = MappingRefs{refs}.keys();
    return fill_dict(keys, new_dict(keys), values, base);
}

nb::object copy_dict(PyObject *const *refs, PyObject *source, std::span<const uint32_t> changed, Stack &values,
                     size_t base) {
    const Keys &keys = MappingRefs{refs}.keys();
    nb::object dict = checked(PyDict_Copy(source));
    for (const uint32_t i : changed) checked(PyDict_SetItem(dict.ptr(), keys.key(i), values[base + i]));
    values.drop_to(base);
    return dict;
}

nb::object build_ordered_dict(PyObject *const *refs, Stack &values, size_t base) {
    const Keys &keys = MappingRefs{refs}.keys();
    nb::object dict = checked(PyODict_New());
    for (uint32_t i = 0; i < keys.size(); ++i)
        checked(PyODict_SetItem(dict.ptr(), keys.inserted_key(i), values[base + keys.rank(i)]));
    check_size(dict.ptr(), static_cast<Py_ssize_t>(keys.count));
    values.drop_to(base);
    return dict;
}

nb::object build_default_dict(PyObject *const *refs, Stack &values, size_t base) {
    const nb::handle type(as_object(constants.default_dict));
    const MappingRefs mapping{refs};
    return fill_dict(mapping.keys(), call(type, nb::handle(mapping.default_factory())), values, base);
}

// GCOVR_EXCL_START: Python 3.15 has frozendicts
nb::object build_frozen_dict(PyObject *const *refs, Stack &values, size_t base) {
    return new_frozen_dict(build_dict(refs, values, base));
}
// GCOVR_EXCL_STOP

nb::object build_deque(PyObject *const *refs, Stack &values, size_t base) {
    const nb::handle type(as_object(constants.deque));
    return call(type, values.take_list(base), nb::handle(DequeRefs{refs}.maxlen()));
}

nb::object build_custom(PyObject *const *refs, Stack &values, size_t base, MadeOnce &once) {
    const CustomRefs custom{refs};
    const Registration &registration = custom.registration();
    if (const std::shared_ptr<StandIn> stand_in = registration.stand_in) {
        const auto count = static_cast<uint32_t>(values.size() - base);
        nb::object built = stand_in->build(registration, custom.aux_data(), values.data() + base, count, once, false);
        if (built.is_valid()) {
            values.drop_to(base);
            return built;
        }
    }
    const nb::object unflatten = registration.unflatten, children = values.take_tuple(base);
    nb::object built = call(unflatten, nb::handle(custom.aux_data()), children);
    PyObject *const *const items = &PyTuple_GET_ITEM(children.ptr(), 0);
    if (once.puts_none && std::any_of(items, items + PyTuple_GET_SIZE(children.ptr()), is_none)) [[unlikely]]
        require_nones(refs, built, children);
    return built;
}

nb::object build_fields(PyObject *const *refs, Stack &values, size_t base) {
    const FieldsRefs fields{refs};
    const Registration &registration = fields.registration();
    const size_t num_meta = registration.meta_access.size();
    PyObject *const *meta = fields.meta_values();
    nb::object own;
    if (std::any_of(meta, meta + num_meta, is_mutable_set)) [[unlikely]] {
        own = own_values(meta, num_meta);
        meta = &PyTuple_GET_ITEM(own.ptr(), 0);
    }
    nb::object object = new_instance(registration);
    if (registration.has_only_slots) {
        // Nothing here can raise, so the references are moved, not counted.
        for (size_t i = 0; i < registration.data_access.size(); ++i)
            slot_at(object.ptr(), registration.data_access[i].offset) = values[base + i];
        for (size_t i = 0; i < num_meta; ++i)
            slot_at(object.ptr(), registration.meta_access[i].offset) = incref(meta[i]);
        values.forget_to(base);
        return object;
    }
    if (registration.data.is_none()) {
        write_fields(object.ptr(), registration, fields.keys_box(), values.data() + base);
        write_meta(object.ptr(), registration, meta);
    } else {
        write_named(object.ptr(), registration, values.data() + base, meta);
    }
    values.drop_to(base);
    return object;
}

}  // namespace pydag::detail
