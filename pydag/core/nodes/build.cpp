// SPDX-License-Identifier: Apache-2.0
#include "nodes/build.h"

#include "types/fields.h"
#include "types/keys.h"

namespace pydag::detail {
namespace {

// Copying a dict that has the keys costs less than growing one, from some size on.
nb::object new_dict(Keys &keys) {
    constexpr uint32_t kMostWithoutGrowth = 5;
    if (keys.size() <= kMostWithoutGrowth) return checked(PyDict_New());
    if (!keys.dict_template.is_valid()) {
        nb::object filled = checked(PyDict_New());
        for (uint32_t i = 0; i < keys.size(); ++i) checked(PyDict_SetItem(filled.ptr(), keys.inserted_key(i), Py_None));
        keys.dict_template = std::move(filled);
    }
    return checked(PyDict_Copy(keys.dict_template.ptr()));
}

nb::object fill_dict(const Keys &keys, nb::object dict, Stack &values, size_t base) {
    for (uint32_t i = 0; i < keys.count; ++i)
        checked(PyDict_SetItem(dict.ptr(), keys.inserted_key(i), values[base + keys.rank(i)]));
    values.drop_to(base);
    return dict;
}

}  // namespace

nb::object build_dict(PyObject *const *refs, Stack &values, size_t base) {
    Keys &keys = KeysBox::of(refs[0]);
    return fill_dict(keys, new_dict(keys), values, base);
}

nb::object build_ordered_dict(PyObject *const *refs, Stack &values, size_t base) {
    const Keys &keys = KeysBox::of(refs[0]);
    nb::object dict = checked(PyODict_New());
    for (uint32_t i = 0; i < keys.size(); ++i)
        checked(PyODict_SetItem(dict.ptr(), keys.inserted_key(i), values[base + keys.rank(i)]));
    values.drop_to(base);
    return dict;
}

nb::object build_default_dict(PyObject *const *refs, Stack &values, size_t base) {
    const nb::handle type(reinterpret_cast<PyObject *>(default_dict_type()));
    return fill_dict(KeysBox::of(refs[0]), call(type, nb::handle(refs[1])), values, base);
}

nb::object build_deque(PyObject *const *refs, Stack &values, size_t base) {
    const nb::handle type(reinterpret_cast<PyObject *>(deque_type()));
    return call(type, values.take_list(base), nb::handle(refs[0]));
}

nb::object build_custom(PyObject *const *refs, Stack &values, size_t base) {
    const nb::object unflatten = RegistrationBox::of(refs[0]).unflatten;
    return call(unflatten, nb::handle(refs[1]), values.take_tuple(base));
}

nb::object build_fields(PyObject *const *refs, Stack &values, size_t base) {
    const Registration &registration = RegistrationBox::of(refs[0]);
    const Keys &keys = KeysBox::of(refs[1]);
    PyObject *const *const meta = &PyTuple_GET_ITEM(refs[2], 0);
    nb::object object = new_instance(registration);
    if (registration.has_only_slots) {
        // Nothing can go wrong, so the values change hands.
        for (uint32_t i = 0; i < keys.count; ++i)
            slot_at(object.ptr(), registration.data_access[i].offset) = values[base + i];
        for (size_t i = 0; i < registration.meta_access.size(); ++i)
            slot_at(object.ptr(), registration.meta_access[i].offset) = incref(meta[i]);
        values.resize_down(base);
        return object;
    }
    const bool is_fixed = refs[1] == registration.data.ptr();
    for (uint32_t i = 0; i < keys.count; ++i) {
        if (is_fixed) write_field(object.ptr(), registration.data_access[i], values[base + i]);
        else checked(PyObject_GenericSetAttr(object.ptr(), keys.key(i), values[base + i]));
    }
    for (size_t i = 0; i < registration.meta_access.size(); ++i)
        write_field(object.ptr(), registration.meta_access[i], meta[i]);
    values.drop_to(base);
    return object;
}

}  // namespace pydag::detail
