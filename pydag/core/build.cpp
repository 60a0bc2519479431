// SPDX-License-Identifier: Apache-2.0
#include "build.h"

#include "fields.h"
#include "keys.h"

namespace pydag {
namespace {

// Copying a dict that has the keys costs less than growing one key by key.
nb::object new_dict(Keys &keys) {
    if (keys.size() == 0) return checked(PyDict_New());
    if (!keys.dict_template.is_valid()) {
        nb::object filled = checked(PyDict_New());
        for (uint32_t i = 0; i < keys.size(); ++i) checked(PyDict_SetItem(filled.ptr(), keys.inserted_key(i), Py_None));
        keys.dict_template = std::move(filled);
    }
    return checked(PyDict_Copy(keys.dict_template.ptr()));
}

nb::object build_dict(nb::handle box, nb::object dict, Stack &values, size_t base) {
    const Keys &keys = KeysBox::of(box);
    for (uint32_t i = 0; i < keys.size(); ++i)
        checked(PyDict_SetItem(dict.ptr(), keys.inserted_key(i), values[base + keys.rank(i)]));
    values.drop_to(base);
    return dict;
}

nb::object build_ordered_dict(nb::handle box, Stack &values, size_t base) {
    const Keys &keys = KeysBox::of(box);
    nb::object dict = checked(PyODict_New());
    for (uint32_t i = 0; i < keys.size(); ++i)
        checked(PyODict_SetItem(dict.ptr(), keys.inserted_key(i), values[base + keys.rank(i)]));
    values.drop_to(base);
    return dict;
}

nb::object build_default_dict(PyObject *const *refs, Stack &values, size_t base) {
    const nb::handle type(reinterpret_cast<PyObject *>(default_dict_type()));
    return build_dict(refs[0], call(type, nb::handle(refs[1])), values, base);
}

nb::object build_deque(PyObject *const *refs, Stack &values, size_t base) {
    const nb::handle type(reinterpret_cast<PyObject *>(deque_type()));
    return call(type, values.take_list(base), nb::handle(refs[0]));
}

// As `_make` does: the class's own `__new__` may have another signature.
nb::object build_namedtuple(PyObject *const *refs, Stack &values, size_t base) {
    auto *const type = reinterpret_cast<PyTypeObject *>(refs[0]);
    nb::object tuple = tuple_of_class(type, values.data() + base, values.size() - base);
    values.resize_down(base);
    return tuple;
}

nb::object build_custom(PyObject *const *refs, Stack &values, size_t base) {
    const nb::object unflatten = RegistrationBox::of(refs[0]).unflatten;
    return call(unflatten, nb::handle(refs[1]), values.take_tuple(base));
}

nb::object build_fields(PyObject *const *refs, Stack &values, size_t base) {
    const Registration &registration = RegistrationBox::of(refs[0]);
    const Keys &keys = KeysBox::of(refs[1]);
    nb::object object = new_instance(registration);
    const bool is_fixed = refs[1] == registration.data.ptr();
    for (uint32_t i = 0; i < keys.size(); ++i) {
        if (is_fixed) write_field(object.ptr(), registration.data_access[i], values[base + i]);
        else checked(PyObject_GenericSetAttr(object.ptr(), keys.key(i), values[base + i]));
    }
    for (size_t i = 0; i < registration.meta_access.size(); ++i)
        write_field(object.ptr(), registration.meta_access[i], PyTuple_GET_ITEM(refs[2], i));
    values.drop_to(base);
    return object;
}

}  // namespace

nb::object build_node(Kind kind, PyObject *const *refs, Stack &values, size_t base) {
    switch (kind) {
        case Kind::kNone:
            return nb::none();
        case Kind::kTuple:
            return values.take_tuple(base);
        case Kind::kList:
            return values.take_list(base);
        case Kind::kDict:
            return build_dict(refs[0], new_dict(KeysBox::of(refs[0])), values, base);
        case Kind::kNamedTuple:
            return build_namedtuple(refs, values, base);
        case Kind::kOrderedDict:
            return build_ordered_dict(refs[0], values, base);
        case Kind::kDefaultDict:
            return build_default_dict(refs, values, base);
        case Kind::kDeque:
            return build_deque(refs, values, base);
        case Kind::kStructSequence:
            return call(nb::handle(refs[0]), values.take_tuple(base));
        case Kind::kCustom:
            return build_custom(refs, values, base);
        case Kind::kFields:
            return build_fields(refs, values, base);
        case Kind::kLeaf:
        case Kind::kAlias:
            break;
    }
    nb::raise("leaves and aliases are not built");
}

}  // namespace pydag
