// SPDX-License-Identifier: Apache-2.0
//
// What stands where among the references that a node keeps beside it: one typed view for each
// layout. Nothing else indexes them, so a kind's layout can change here and in kind.h alone.
//
// A view borrows: it is good for as long as the structure, or whoever owns the references, is.
#pragma once

#include "types/keys.h"
#include "types/registry.h"

namespace pydag {

// dict, OrderedDict, defaultdict.
struct MappingRefs {
    PyObject *const *at;
    PyObject *keys_box() const { return at[0]; }
    Keys &keys() const { return KeysBox::of(at[0]); }
    PyObject *default_factory() const { return at[1]; }  // of a defaultdict
};

// namedtuple, struct sequence.
struct TupleClassRefs {
    PyObject *const *at;
    PyObject *type() const { return at[0]; }
};

struct DequeRefs {
    PyObject *const *at;
    PyObject *maxlen() const { return at[0]; }
};

// A class with a flatten function.
struct CustomRefs {
    PyObject *const *at;
    PyObject *registration_box() const { return at[0]; }
    Registration &registration() const { return RegistrationBox::of(at[0]); }
    PyObject *aux_data() const { return at[1]; }
    PyObject *entries() const { return at[2]; }  // a tuple, or None where children are numbered
};

// A class that is opened by its fields.
struct FieldsRefs {
    PyObject *const *at;
    PyObject *registration_box() const { return at[0]; }
    Registration &registration() const { return RegistrationBox::of(at[0]); }
    PyObject *keys_box() const { return at[1]; }
    Keys &keys() const { return KeysBox::of(at[1]); }
    PyObject *meta() const { return at[2]; }  // a tuple: the values of the meta fields
    PyObject *const *meta_values() const { return &PyTuple_GET_ITEM(at[2], 0); }
};

// What several kinds have, asked of any of them.

// The keys of a mapping or the names of the fields: a Keys object. Only for kinds with `Entries::kKeys`.
inline PyObject *keys_box_of(Kind kind, PyObject *const *refs) {
    return traits(kind).is_mapping ? MappingRefs{refs}.keys_box() : FieldsRefs{refs}.keys_box();
}
inline const Keys &node_keys(Kind kind, PyObject *const *refs) { return KeysBox::of(keys_box_of(kind, refs)); }

// The registration of a node whose class is registered.
inline const Registration &node_registration(PyObject *const *refs) { return CustomRefs{refs}.registration(); }

}  // namespace pydag
