// SPDX-License-Identifier: Apache-2.0
#include "nodes/node_data.h"

#include "base/tuples.h"
#include "structure/node_refs.h"

namespace pydag {
namespace {

nb::object key_list(PyObject *const *refs) {
    const Keys &keys = MappingRefs{refs}.keys();
    nb::object list = checked(PyList_New(keys.size()));
    for (uint32_t i = 0; i < keys.size(); ++i) PyList_SET_ITEM(list.ptr(), i, incref(keys.key(i)));
    return list;
}

}  // namespace

nb::object node_data(Kind kind, PyObject *const *refs) {
    switch (kind) {
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kFrozenDict:
            return key_list(refs);
        case Kind::kDefaultDict:
            return tuple_of(nb::borrow(MappingRefs{refs}.default_factory()), key_list(refs));
        case Kind::kNamedTuple:
        case Kind::kStructSequence:
            return nb::borrow(TupleClassRefs{refs}.type());
        case Kind::kDeque:
            return nb::borrow(DequeRefs{refs}.maxlen());
        case Kind::kCustom:
            return nb::borrow(CustomRefs{refs}.aux_data());
        case Kind::kFields:
            return tuple_of(FieldsRefs{refs}.keys().order(), nb::borrow(FieldsRefs{refs}.meta()));
        case Kind::kLeaf:
        case Kind::kAlias:
        case Kind::kNone:
        case Kind::kTuple:
        case Kind::kList:
            break;
    }
    return nb::none();
}

}  // namespace pydag
