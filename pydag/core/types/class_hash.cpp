// SPDX-License-Identifier: Apache-2.0
#include "types/class_hash.h"

#include "base/constants.h"
#include "base/text_hash.h"
#include "base/threads.h"
#include "types/class_table.h"
#include "types/fields.h"

#include <new>

namespace pydag {
namespace {

ClassTable<uint64_t> &table() { return OwnOfThread<ClassTable<uint64_t>>::get(); }

uint64_t hash_of_name(PyTypeObject *type) {
    if (!is_heap_type(type)) {
        uint64_t hash = 1;
        for (const char *c = type->tp_name; *c; ++c) hash = mix(hash, static_cast<unsigned char>(*c));
        return hash;
    }
    uint64_t hash = mix_if_text(2, reinterpret_cast<PyHeapTypeObject *>(type)->ht_qualname);
    const nb::object attributes = dict_of_class(type);
    hash = mix_if_text(hash, find_by_address(attributes.ptr(), constants.module).ptr());
    const nb::object owned_names = find_by_address(attributes.ptr(), constants.fields);
    PyObject *const names = owned_names.ptr();
    const bool has_names = names && PyTuple_CheckExact(names) && PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS);
    for (Py_ssize_t i = 0; has_names && i < PyTuple_GET_SIZE(names); ++i)
        hash = mix_if_text(hash, PyTuple_GET_ITEM(names, i));
    return hash;
}

void remember(PyTypeObject *type, uint64_t hash) {
    nb::object weakref = weak_reference_to(type);
    if (table().is_full()) table().make_room();
    table().add({type, std::move(weakref), hash});
}

}  // namespace

uint64_t hash_of_class(PyTypeObject *type) {
    if (const auto *const known = table().find(type)) return known->value;
    const uint64_t hash = hash_of_name(type);
    try {
        remember(type, hash);
    } catch (const std::bad_alloc &) {
    } catch (nb::python_error &) {
    }
    return hash;
}

}  // namespace pydag
