// SPDX-License-Identifier: Apache-2.0
//
// Which of a node's references is which: one typed view for each layout, and one for the references of any node. Only
// this file indexes them. A view borrows.
#pragma once

#include "structure/structure.h"
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
    PyObject *entries() const { return at[2]; }
};

// A class that is opened by its fields.
struct FieldsRefs {
    PyObject *const *at;
    PyObject *registration_box() const { return at[0]; }
    Registration &registration() const { return RegistrationBox::of(at[0]); }
    PyObject *keys_box() const { return at[1]; }
    Keys &keys() const { return KeysBox::of(at[1]); }
    PyObject *meta() const { return at[2]; }
    PyObject *const *meta_values() const { return &PyTuple_GET_ITEM(at[2], 0); }
};

// The references of a node of any kind, with their roles.
struct NodeRefs {
    Kind kind;
    PyObject *const *at;

    uint32_t size() const { return num_refs(kind); }
    Role role(uint32_t i) const { return traits(kind).roles[i]; }
    PyObject *ref(uint32_t i) const { return at[i]; }
    // Null if nodes of this kind have none.
    PyObject *find(Role role) const {
        const size_t index = find_role(kind, role);
        return index < kMostRefs ? at[index] : nullptr;
    }
};

// What several kinds have in common.

// The keys of a mapping or the names of the fields: a Keys object. Only for kinds that have them.
inline PyObject *keys_box_of(Kind kind, PyObject *const *refs) {
    return traits(kind).is_mapping ? MappingRefs{refs}.keys_box() : FieldsRefs{refs}.keys_box();
}
inline const Keys &node_keys(Kind kind, PyObject *const *refs) { return KeysBox::of(keys_box_of(kind, refs)); }
constexpr bool has_keys(Kind kind) {
    return traits(kind).entries == Entries::kKeys || traits(kind).entries == Entries::kNames;
}

// The registration of a node whose class is registered.
inline const Registration &node_registration(PyObject *const *refs) { return CustomRefs{refs}.registration(); }

// Whether `is` means something for a node: false for a value, which is opened at every occurrence.
inline bool has_identity(Kind kind, PyObject *const *refs) {
    return may_have_identity(kind) && (!is_registered(kind) || node_registration(refs).has_identity);
}

// Whether a walk has to ask a node even if it knows what to expect: Python code opens it, or sorts its keys.
inline bool must_ask(Node node, PyObject *const *refs) {
    if (is_callback(node.kind)) return !node_registration(refs).stand_in;
    if (!traits(node.kind).is_mapping) return false;
    const Keys &keys = MappingRefs{refs}.keys();
    return !keys.has_constant_hashes || keys.size() != node.count;  // a kept structure may be without the keys
}

// Whether leaves directly below a node have no identity; `above`: whether those beside the node have none.
inline bool are_leaves_values(Kind kind, PyObject *const *refs, bool above) {
    if (is_registered(kind)) return node_registration(refs).leaves_are_values;
    return above && !may_have_identity(kind);
}

}  // namespace pydag
