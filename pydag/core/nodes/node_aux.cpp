// SPDX-License-Identifier: Apache-2.0
#include "nodes/nodes.h"

#include "base/equality.h"
#include "base/tuples.h"
#include "structure/node_refs.h"
#include "types/key_table.h"

#include <algorithm>

namespace pydag {
namespace {

bool is_tuple_of(nb::handle object, size_t count) {
    return PyTuple_Check(object.ptr()) && is_filled(object) &&
           PyTuple_GET_SIZE(object.ptr()) == static_cast<Py_ssize_t>(count);
}

// The Keys that were `inserted` and are traversed in this order, if either the first `num_sorted` of them are sorted,
// or none is. Null if not.
nb::object keys_with_order(nb::handle inserted, nb::handle order, uint32_t count, size_t num_sorted) {
    if (!is_tuple_of(inserted, count) || !is_tuple_of(order, count)) return {};
    const nb::object distinct = checked(PySet_New(inserted.ptr()));
    if (PySet_GET_SIZE(distinct.ptr()) != static_cast<Py_ssize_t>(count)) return {};
    for (const size_t sorted : {num_sorted, size_t{0}}) {
        nb::object keys = keys_of(&PyTuple_GET_ITEM(inserted.ptr(), 0), count, sorted);
        if (are_equal_objects(KeysBox::of(keys).order(), order)) return keys;
    }
    return {};
}

// How many of these names, counted from the first one, aren't slots of the class.
size_t num_in_dict(const Registration &registration, nb::handle names) {
    const auto is_slot = [&](PyObject *name) {
        return std::any_of(registration.slot_access.begin(), registration.slot_access.end(),
                           [&](const FieldAccess &slot) { return is_same_name(slot.name.ptr(), name); });
    };
    PyObject *const *const first = &PyTuple_GET_ITEM(names.ptr(), 0);
    return static_cast<size_t>(std::find_if(first, first + PyTuple_GET_SIZE(names.ptr()), is_slot) - first);
}

// The references of an instance, where `aux` fits its class as it is registered now.
bool add_fields(PyObject *box, nb::handle aux, uint32_t count, Refs &refs) {
    const Registration &registration = RegistrationBox::of(box);
    if (!is_tuple_of(aux, 2) && !is_tuple_of(aux, 3)) return false;
    const nb::handle names(PyTuple_GET_ITEM(aux.ptr(), 0)), meta(PyTuple_GET_ITEM(aux.ptr(), 1));
    const nb::handle inserted(PyTuple_GET_ITEM(aux.ptr(), PyTuple_GET_SIZE(aux.ptr()) == 3 ? 2 : 0));
    if (!is_tuple_of(inserted, count) || !is_tuple_of(meta, registration.meta_access.size())) return false;
    nb::object keys = keys_with_order(inserted, names, count, num_in_dict(registration, inserted));
    if (!keys.is_valid()) return false;
    const nb::object data = registration.data;
    if (!data.is_none() && !are_equal_objects(KeysBox::of(data).order(), names)) return false;
    refs.push_borrowed(box);
    refs.push_new(data.is_none() ? std::move(keys) : data);
    refs.push_borrowed(meta.ptr());
    return true;
}

// The keys of a frozendict, where `aux` has them as inserted and in an order of traversal.
// GCOVR_EXCL_START: a frozendict, of Python 3.15
bool add_keys(nb::handle aux, uint32_t count, Refs &refs) {
    if (!is_tuple_of(aux, 2)) return false;
    nb::object keys = keys_with_order(PyTuple_GET_ITEM(aux.ptr(), 0), PyTuple_GET_ITEM(aux.ptr(), 1), count, count);
    if (!keys.is_valid()) return false;
    refs.push_new(std::move(keys));
    return true;
}
// GCOVR_EXCL_STOP

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

nb::object aux_of_node(Kind kind, PyObject *const *refs) {
    switch (kind) {
        case Kind::kDeque:
            return nb::borrow(DequeRefs{refs}.maxlen());
        case Kind::kStructSequence:
            return nb::none();
        case Kind::kFrozenDict:  // GCOVR_EXCL_START: Python 3.15
            return tuple_of(MappingRefs{refs}.keys().tuple(), MappingRefs{refs}.keys().order());
        // GCOVR_EXCL_STOP
        case Kind::kCustom: {
            const CustomRefs custom{refs};
            return custom.registration().is_foreign ? nb::object() : nb::borrow(custom.aux_data());
        }
        case Kind::kFields: {
            const FieldsRefs fields{refs};
            if (fields.registration().is_foreign) return nb::object();
            nb::object names = fields.keys().order(), meta = nb::borrow(fields.meta());
            if (fields.keys().in_order) return tuple_of(std::move(names), std::move(meta));
            return tuple_of(std::move(names), std::move(meta), fields.keys().tuple());
        }
        default:
            return nb::object();
    }
}

FromAux add_refs_from_aux(PyTypeObject *type, const TypeInfo &info, nb::handle aux, uint32_t count, Refs &refs) {
    switch (info.kind) {
        case Kind::kDeque:
            refs.push_borrowed(aux.ptr());
            return FromAux::kDone;
        case Kind::kStructSequence:
            refs.push_borrowed(reinterpret_cast<PyObject *>(type));
            return FromAux::kDone;
        case Kind::kFrozenDict:  // GCOVR_EXCL_START: Python 3.15
            return add_keys(aux, count, refs) ? FromAux::kDone : FromAux::kOtherFields;
        // GCOVR_EXCL_STOP
        case Kind::kCustom:
            refs.push_borrowed(info.registration);
            refs.push_borrowed(aux.ptr());
            refs.push_borrowed(Py_None);
            return FromAux::kDone;
        case Kind::kFields:
            return add_fields(info.registration, aux, count, refs) ? FromAux::kDone : FromAux::kOtherFields;
        default:
            return FromAux::kNoSuchNode;
    }
}

}  // namespace pydag
