// SPDX-License-Identifier: Apache-2.0
//
// The options of every function that takes a DAG apart.
#pragma once

#include "base/constants.h"
#include "base/error.h"
#include "base/identity_table.h"
#include "nodes/open_options.h"
#include "spec/cache.h"
#include "structure/structure.h"
#include "types/registry.h"

namespace pydag {

class OpenedByPrefix;

// The options by which calls name them, in the order in which `parse` takes their values. What another
// option needs: its name (constants.option_names) and index here, a member below, its line in `parse`;
// and, in Python, its type (typing.py), its default and its help (public/options.py).
enum OptionIndex : size_t { kIsLeaf, kNoneIsLeaf, kNamespace, kIdentity, kNumOptions };
static_assert(kNumOptions == std::size(Constants{}.option_names), "each option has a name");
// kNumOptions if no option has this name.
size_t index_of_option(PyObject *name);

struct FlattenOptions {
    nb::object is_leaf;  // a predicate, or null
    bool none_is_leaf = false;
    bool leaf_identity = true;         // identity="all"; false: "nodes"
    OpenedByPrefix *prefix = nullptr;  // the predicate isn't asked about objects that it opens
    // Objects that are not opened, nor asked about, by identity: those with the index kKept. Or null.
    const IdentityTable *kept = nullptr;
    static constexpr uint32_t kKept = 0;
    bool asks_names = true;       // false: no class is asked for the names of its children: see open_options.h
    bool opens_callbacks = true;  // false: an object that a flatten function opens is a leaf
    NamespaceRef space;
    nb::object space_name;  // between `let_go_of_space` and `take_space`
    // Whether the namespace itself keeps the insertion order of dicts. Then it is part of every
    // structure made in it, as in optree; a setting for all namespaces is part of no structure.
    bool space_is_ordered = false;
    Roots roots;  // the names of the tree in messages

    // Whether the walk must ask, for each object, whether to open it.
    bool asks() const { return is_leaf.is_valid() || kept; }
    bool keeps(nb::handle object) const { return kept && kept->find(object.ptr()) == kKept; }

    // From the arguments of a call, kNumOptions of them; null: the default.
    static FlattenOptions parse(PyObject *const *values);
    static FlattenOptions in(nb::handle namespace_, PyObject *none_is_leaf = nullptr, PyObject *identity = nullptr) {
        PyObject *const values[kNumOptions] = {nullptr, none_is_leaf, namespace_.ptr(), identity};
        return parse(values);
    }

    // To be called before another thread goes on with a walk: namespaces belong to threads.
    void let_go_of_space() {
        if (kFreeThreaded) space_name = nb::borrow(space->name()), space = NamespaceRef();
    }
    void take_space() {
        if (kFreeThreaded && space_name.is_valid()) space = Namespace::get(space_name);
    }

    // Which objects are tracked by identity, as bits of Identity; `leaves_are_values`: below a node whose leaves have
    // none.
    uint8_t tracked(bool leaves_are_values) const {
        if (!leaf_identity) return kObjectNode;
        return leaves_are_values ? kObjectNode | kLeafBelowAll : kObjectNode | kObjectLeaf;
    }

    // The settings on which a structure depends.
    Setting setting() const { return {space->id(), none_is_leaf, space_is_ordered, asks_names}; }
    // Sets the options of opening a node.
    void prepare(OpenOptions &open) const {
        open.space = space.get();
        open.insertion_ordered = space_is_ordered ? 1 : -1;
        open.asks_names = asks_names;
    }
    // Asks the predicate, which must exist, about an object. RuntimeError if the answer isn't a bool.
    bool ask_to_keep(nb::handle object) const;

    // Completes a structure that has all of its nodes.
    // `has_registered`: one of them is of a registered class.
    void describe(StructureBuilder &builder, size_t num_leaves, bool has_registered) const;
};

}  // namespace pydag
