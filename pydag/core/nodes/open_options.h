// SPDX-License-Identifier: Apache-2.0
//
// What a walk gives to all nodes that it opens.
#pragma once

#include "base/held.h"
#include "types/namespace.h"

namespace pydag {

using Stack = RefBuffer<192>;

struct OpenOptions {
    Namespace *space;
    Arena<PyObject *, 24> arena = {};  // for children that don't stand in their node in a row
    // Whether dicts keep their insertion order here; -1 until `ask_insertion_order` has asked for a dict.
    int insertion_ordered = -1;
    bool wants_entries = true;       // false: a flatten function's names for the children are not looked at
    bool asks_names = true;          // false: nor is a class asked for names in a call of their own
    bool owns_attributes = false;    // whether nothing but the instance that was read last holds its attributes
    bool leaves_are_values = false;  // of the instance of a class with functions that was read last
    // Owns what was borrowed, where that is needed.
    [[no_unique_address]] Held held = {};
    void note_instance(bool owns, bool has_values) {
        owns_attributes = owns;
        leaves_are_values = has_values;
    }
    bool ask_insertion_order() {
        if (insertion_ordered < 0) insertion_ordered = space->is_dict_insertion_ordered();
        return insertion_ordered != 0;
    }
};

// Whether a container leads to what it holds by one way only, so that an object to which only this container has a
// reference can be met only once, and needs no place in the identity table. The container, which was just read, is
// opened only once. `num_own`: how many references to it the walk itself has.
inline bool owns_its_slots(Kind kind, PyObject *container, const OpenOptions &options, Py_ssize_t num_own = 0) {
    switch (kind) {
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
        case Kind::kFrozenDict:
        case Kind::kTuple:
        case Kind::kNamedTuple:
        case Kind::kStructSequence:
            // A dict may be the `__dict__` of an instance, which leads to its values, too. A tuple may be opened again.
            return has_references(container, 1 + num_own);
        case Kind::kList:
        case Kind::kDeque:
            return true;
        default:
            return (kind == Kind::kFields || kind == Kind::kCustom) && options.owns_attributes;
    }
}

}  // namespace pydag
