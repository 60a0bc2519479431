// SPDX-License-Identifier: Apache-2.0
//
// The structures that were met last, for walks to follow, so that a tree of a known structure
// gets the spec that it got before.
//
// A living spec owns its structure, and the cache only points to it. A spec that dies leaves its
// structure to the cache, if that may keep it (kept_structure.h). So the cache never keeps a spec alive,
// but up to kSize structures, of 50 MB in all and without any object of the user's. It is emptied by
// `clear_caches()`, and whenever a class is registered or unregistered, or is found to have been destroyed.
//
// Where threads run at the same time, each has a cache of its own, of that size. A spec is in the cache of the thread
// that made it; if another thread destroys it, its structure is not kept.
#pragma once

#include "spec/kept_structure.h"

namespace pydag {

// What a structure depends on besides the tree.
struct Setting {
    uint64_t space = 0;  // the id of the namespace
    bool none_is_leaf = false;
    bool is_ordered = false;  // whether the namespace itself keeps the insertion order of dicts
    bool operator==(const Setting &) const = default;
};

// A structure out of the cache, while a walk follows it. It can't go away meanwhile.
class CachedStructure {
public:
    // What is remembered for trees whose root looks like this one's.
    CachedStructure(PyObject *root, const Setting &setting);
    CachedStructure(const CachedStructure &) = delete;
    CachedStructure &operator=(const CachedStructure &) = delete;
    ~CachedStructure();

    // Empty where nothing is remembered.
    const Structure &structure() const;

    // A tuple of the paths of its leaves, kept with it; null where they are too many.
    nb::object paths();
    // The spec of the remembered structure: the living one, or a new one.
    nb::object take_spec();
    // Replaces what is remembered by the structure in `builder`; returns its spec.
    nb::object take_spec(StructureBuilder &&builder);
    // The same without a spec: `structure()` is then the structure of `builder`.
    void keep(StructureBuilder &&builder);

private:
    void register_spec(nb::handle spec);

    // Whether the cache has not been emptied since the walk began. If it has, the walk's structure isn't put into it:
    // its classes may have been registered anew.
    bool is_current() const;

    size_t slot_;
    uint64_t generation_;  // how often the cache had been emptied before the walk
    Setting setting_;
    nb::object living_;  // a PyDagSpec, or
    Spec structure_;     // a structure that no spec owns
    Holdings holdings_;  // of that
    bool may_put_back_ = true;
};

void forget_specs();
// How often it was emptied, or that of any thread: a structure that was taken from it holds for as long as this stays
// the same.
uint64_t cache_generation();

}  // namespace pydag
