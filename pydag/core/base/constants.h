// SPDX-License-Identifier: Apache-2.0
//
// The Python objects that the core knows by name: what it imports, and the strings that it looks up.
//
// All are made when the module is. If a static variable within a function imported something at first use, other
// threads would wait for it, while the imported code may wait for one of these threads.
#pragma once

#include "base/capi.h"

namespace pydag {

// The strings that are looked up: for each the name of its member, and its text.
#define PYDAG_NAMES(DO)                                                                                               \
    DO(add_note, "add_note"), DO(notes, "__notes__"), DO(all, "all"), DO(args, "args"), DO(as_dict, "_asdict"),       \
        DO(aval, "_aval"), DO(buf, "_buf"), DO(compare, "compare"), DO(dataclass_params, "__dataclass_params__"),     \
        DO(deepcopy, "__deepcopy__"), DO(dtype_fields, "fields"), DO(default_factory, "default_factory"),             \
        DO(dlpack, "__dlpack__"), DO(eq, "eq"), DO(eq_method, "__eq__"), DO(fields, "_fields"), DO(fill, "fill"),     \
        DO(frozen, "frozen"), DO(func, "func"), DO(hash_method, "__hash__"), DO(keywords, "keywords"),                \
        DO(kind, "kind"), DO(make, "_make"), DO(maxlen, "maxlen"), DO(metadata, "metadata"),                          \
        DO(memory_space, "memory_space"), DO(module, "__module__"), DO(name, "name"), DO(names, "names"),             \
        DO(positions, "positions"), DO(qualified_name, "__qualname__"), DO(refs, "_refs"), DO(sharding, "_sharding"), \
        DO(start, "start"), DO(step, "step"), DO(stop, "stop"), DO(str, "str"), DO(subdtype, "subdtype"),             \
        DO(torch_module, "Module"), DO(torch_nn, "torch.nn"), DO(value, "value"), DO(values, "values")

inline constexpr size_t kNumTreeKinds = 12;  // of optree.PyTreeKind

// Owned for the life of the process: a static owning object would be destroyed after the interpreter.
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
    PyObject *unopened_hint;                  // pydag.structure.text.unopened_hint
    PyObject *dataclass_fields;               // dataclasses.fields
    PyObject *spec_shared;                    // pydag.structure.spec_methods
    PyObject *spec_to_json, *spec_from_json;  // pydag.structure.spec_methods
    PyObject *no_items;                       // ()
    PyObject *empty_text;                     // ""
    PyObject *argument_names;                 // ("args", "kwargs")
    PyObject *option_names[4];                // of FlattenOptions, in the order of OptionIndex
#define PYDAG_DECLARE(member, text) *member
    PyObject PYDAG_NAMES(PYDAG_DECLARE);
#undef PYDAG_DECLARE
};
inline Constants constants = {};

void make_constants();

}  // namespace pydag
