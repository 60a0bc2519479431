// SPDX-License-Identifier: Apache-2.0
//
// The Python objects that the core knows by name: what it imports, and the strings that it looks up.
//
// All are made when the module is. A static variable within a function would be made at first use, and
// other threads that come there wait until it is made. But if making it imports something, Python code
// runs, which may wait for one of those threads: then none of them ever goes on.
#pragma once

#include "base/capi.h"

namespace pydag {

inline constexpr size_t kNumTreeKinds = 12;  // of optree.PyTreeKind

// Owned for the life of the process: a static owning object would be destroyed after the
// interpreter is gone.
struct Constants {
    PyTypeObject *default_dict, *deque;
    PyTypeObject *frozen_dict;   // null in a Python that has none
    PyTypeObject *partial;       // of functools
    PyTypeObject *python_class;  // an ordinary class, as a class statement makes it
    // optree's classes
    PyObject *accessor, *sequence_entry, *mapping_entry, *namedtuple_entry, *structseq_entry, *attribute_entry;
    PyObject *tree_kinds[kNumTreeKinds];      // the members of PyTreeKind, by number
    PyObject *new_object;                     // copyreg.__newobj__
    PyObject *short_repr, *bounded_repr;      // pydag.structure.text
    PyObject *unopened_hint;                  // pydag.structure.hints
    PyObject *dataclass_fields;               // dataclasses.fields
    PyObject *spec_shared;                    // pydag.sharing.shared_object.shared_of_spec
    PyObject *spec_to_json, *spec_from_json;  // pydag.structure.spec_methods
    PyObject *no_items;                       // ()
    PyObject *empty_text;                     // ""
    PyObject *argument_names;                 // ("args", "kwargs")
    PyObject *option_names[4];                // of FlattenOptions, in the order of OptionIndex
    // Strings; each has the name of its member here, some with underscores around it or `method` behind.
    PyObject *add_note, *notes, *all, *args, *as_dict, *aval, *buf, *compare, *dataclass_params, *default_factory,
        *dlpack, *eq, *eq_method, *fields, *fill, *frozen, *func, *hash_method, *keywords, *kind, *make, *maxlen,
        *memory_space, *module, *name, *positions, *refs, *sharding, *start, *step, *stop, *torch_module, *torch_nn,
        *tree, *value, *values;
};
inline Constants constants = {};

void make_constants();

}  // namespace pydag
