// SPDX-License-Identifier: Apache-2.0
//
// The paths from the root to leaves, read from the structure. A shared object has the path of its anchor.
#pragma once

#include "base/error.h"
#include "structure/structure.h"

namespace pydag {

// The entry of a node's child: an index, a key, the name of a field, or an entry from the flatten function.
nb::object entry_of(Kind kind, PyObject *const *refs, uint32_t child);

// The class of a node; null for leaves and aliases.
nb::object type_of(Kind kind, PyObject *const *refs);
// Its optree.PyTreeKind: a class registered by fields counts as a custom one.
nb::handle tree_kind(Kind kind);
// A tuple of the names that a namedtuple or struct sequence class has for its items now.
nb::object fields_of(Kind kind, PyObject *cls);

// The same entry as an error message shows it.
Step step_of(Kind kind, PyObject *const *refs, uint32_t child);
// The whole step as Python text: `.name` or `[entry]`. If the `repr` of the entry raises, its class and address.
nb::object step_text(const Step &step);

// The path to the node at a position, as an error message shows it; and as text.
Steps steps_to(const Structure &structure, uint32_t node);
std::string path_of(const Structure &structure, uint32_t node);
// Turns the exception in flight into a Python error that names the path to a node (base/error.h).
[[noreturn]] void rethrow_at(const Structure &structure, uint32_t node, const char *doing,
                             const Roots &roots = Roots());

using Ways = RefBuffer<96>;
// Adds the path of each leaf: a tuple of entries.
void add_paths(const Structure &structure, Ways &ways);
// Adds the optree.PyTreeAccessor of each leaf.
void add_accessors(const Structure &structure, Ways &ways);
// Adds the path of each leaf as a Python expression, such as `args[0]['layers'][3].w`: the `codify` of its accessor, at
// a tenth of the cost. `roots`: a str, which begins each path; or a tuple of them, which replace the first step.
void add_texts(const Structure &structure, nb::handle roots, Ways &ways);

// A list of what `add`, `add_paths` or `add_accessors`, adds.
template <void (*add)(const Structure &, Ways &)>
nb::object ways_to_leaves(const Structure &structure) {
    Ways ways;
    add(structure, ways);
    return ways.take_list();
}

}  // namespace pydag
