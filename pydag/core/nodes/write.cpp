// SPDX-License-Identifier: Apache-2.0
#include "nodes/write.h"

#include "structure/node_refs.h"
#include "types/fields.h"

namespace pydag {
namespace {

void write_fields(PyObject *const *refs, PyObject *object, PyObject *const *children) {
    const FieldsRefs fields{refs};
    const nb::object owned = nb::borrow(fields.registration_box());
    const bool is_fixed = fields.keys_box() == fields.registration().data.ptr();
    for (uint32_t i = 0; i < fields.keys().size(); ++i) {
        if (is_fixed) write_field(object, fields.registration().data_access[i], children[i]);
        else checked(PyObject_GenericSetAttr(object, fields.keys().key(i), children[i]));
    }
}

}  // namespace

bool is_writable(Kind kind) {
    switch (kind) {
        case Kind::kList:
        case Kind::kDeque:
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
        case Kind::kFields:
            return true;
        default:
            return false;
    }
}

void write_children(Kind kind, PyObject *const *refs, PyObject *object, PyObject *const *children, uint32_t count) {
    switch (kind) {
        case Kind::kList:
        case Kind::kDeque:
            for (uint32_t i = 0; i < count; ++i) checked(PySequence_SetItem(object, i, children[i]));
            return;
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
            for (uint32_t i = 0; i < count; ++i)
                checked(PyDict_SetItem(object, MappingRefs{refs}.keys().key(i), children[i]));
            return;
        case Kind::kFields:
            return write_fields(refs, object, children);
        default:
            nb::raise("children of this kind of node can't be changed");
    }
}

}  // namespace pydag
