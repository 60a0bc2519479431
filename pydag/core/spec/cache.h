// SPDX-License-Identifier: Apache-2.0
//
// The structures that were met last: a walk follows them, and a tree of a known structure gets its spec again.
//
// A living spec owns its structure, and the cache only points to it. A spec that dies leaves its structure to the
// cache, if that may keep it (kept_structure.h). So the cache keeps no spec alive, but up to kSize structures, of 50 MB
// in all and without any object of the user's. `clear_caches()` empties it; registering or unregistering a class
// removes the structures with nodes of that class. (Leaves' classes are part of no structure: a walk looks them up each
// time.)
//
// Where threads run at the same time, each has a cache of its own. If another thread destroys a spec, its structure is
// not kept.
#pragma once

#include "spec/kept_structure.h"

#include <vector>

namespace pydag {

// Another reference for a structure, by its index.
struct OtherRef {
    uint32_t index;
    nb::object ref;
};
using OtherRefs = std::vector<OtherRef>;

// What a structure depends on besides the tree.
struct Setting {
    uint64_t space = 0;  // the id of the namespace
    bool none_is_leaf = false;
    bool is_ordered = false;  // whether the namespace itself keeps the insertion order of dicts
    bool asks_names = true;   // whether classes were asked for the names of children
    bool operator==(const Setting &) const = default;
};

// A structure out of the cache, while a walk follows it. It can't go away meanwhile.
class CachedStructure {
public:
    // The structure for trees with such a root.
    CachedStructure(PyObject *root, const Setting &setting);
    CachedStructure(const CachedStructure &) = delete;
    CachedStructure &operator=(const CachedStructure &) = delete;
    ~CachedStructure();

    // Empty where nothing is remembered.
    const Structure &structure() const;

    // Whether it has nodes that must be asked (structure/node_refs.h).
    bool must_ask() const { return must_ask_; }
    // Exchanges these references with those of the structure. False if a spec owns it.
    bool replace_refs(OtherRefs &others);

    // A tuple of the paths of its leaves, kept with it; null where they are too many.
    nb::object paths();
    // The spec of the remembered structure: the living one, or a new one.
    nb::object take_spec();
    // Remembers the structure in `builder` instead; returns its spec.
    nb::object take_spec(StructureBuilder &&builder);
    // The same without a spec: `structure()` is then the structure of `builder`.
    void keep(StructureBuilder &&builder);

private:
    void take_entry();
    void register_spec(nb::handle spec);

    // Whether the cache has forgotten nothing since the walk began. Otherwise the walk's structure isn't put into it:
    // its classes may have been registered anew.
    bool is_current() const;

    uint64_t root_;  // its hash
    size_t slot_;
    uint64_t generation_;  // of the cache, when the walk began
    Setting setting_;
    nb::object living_;  // a PyDagSpec, or
    Spec structure_;     // a structure that no spec owns
    Holdings holdings_;  // of that
    bool may_put_back_ = true;
    bool must_ask_ = false;
};

// Forgets the structures with nodes of this class, which need not exist any more; null: all structures.
void forget_specs(PyTypeObject *type = nullptr);
// Changes whenever a thread forgets something: a structure from the cache is valid as long as this number is the same.
uint64_t cache_generation();

}  // namespace pydag
