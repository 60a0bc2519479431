// SPDX-License-Identifier: Apache-2.0
#include "nodes/nodes.h"

#include "base/error.h"
#include "structure/node_refs.h"
#include "types/fields.h"

namespace pydag {
namespace {

// Writing to a key whose hash has changed would add it a second time, since the dict doesn't find it any more.
void check_keys(const Keys &keys, PyObject *dict) {
    for (uint32_t i = 0; !keys.has_constant_hashes && i < keys.size(); ++i)
        if (!checked(PyDict_Contains(dict, keys.key(i))))
            fail(PyExc_ValueError,
                 "the key %U isn't found in its dict any more: its hash or what it is equal to has changed\n"
                 "  Keys must not change while they are in a dict.",
                 short_repr(keys.key(i)).ptr());
}

}  // namespace

bool is_writable(Kind kind, PyObject *const *refs) {
    switch (kind) {
        case Kind::kList:
        case Kind::kDeque:
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
        case Kind::kFields:
            return true;
        case Kind::kCustom:
            return node_registration(refs).stand_in != nullptr;
        default:
            return false;
    }
}

namespace {

// Deletes the cached attributes, which were computed from the children that the instance had before.
void forget_cached(PyObject *object, const Registration &registration) {
    if (registration.cached_access.empty() || Py_TYPE(object)->tp_dictoffset == 0) return;
    const nb::object dict = checked(PyObject_GenericGetDict(object, nullptr));
    for (const FieldAccess &field : registration.cached_access) {
        const nb::object owned = find_in_dict(dict, field.name);
        if (owned.is_valid()) checked(PyDict_DelItem(dict.ptr(), field.name.ptr()));
    }
}

}  // namespace

void write_children(Kind kind, PyObject *const *refs, PyObject *object, PyObject *const *children, uint32_t count,
                    MadeOnce &once) {
    switch (kind) {
        case Kind::kList:
        case Kind::kDeque:
            for (uint32_t i = 0; i < count; ++i) checked(PySequence_SetItem(object, i, children[i]));
            return;
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
            check_keys(MappingRefs{refs}.keys(), object);
            for (uint32_t i = 0; i < count; ++i)
                checked(PyDict_SetItem(object, MappingRefs{refs}.keys().key(i), children[i]));
            return;
        case Kind::kFields: {
            const FieldsRefs fields{refs};
            write_fields(object, fields.registration(), fields.keys_box(), children);
            return forget_cached(object, fields.registration());
        }
        case Kind::kCustom: {
            const CustomRefs custom{refs};
            const std::shared_ptr<StandIn> stand_in = custom.registration().stand_in;
            if (stand_in) return stand_in->write(object, custom.aux_data(), children, count, once);
            [[fallthrough]];
        }
        default:
            nb::raise("children of this kind of node can't be changed");  // GCOVR_EXCL_LINE: nobody tries to
    }
}

}  // namespace pydag
