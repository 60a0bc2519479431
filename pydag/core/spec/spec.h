// SPDX-License-Identifier: Apache-2.0
//
// PyDagSpec: a structure that is finished. Immutable; owns its arrays and references.
#pragma once

#include "base/threads.h"
#include "structure/compare.h"
#include "structure/structure.h"
#include "structure/text.h"

#include <string>

namespace pydag {

class Spec {
public:
    Spec() = default;  // no structure: what `__new__` alone gives, until `__setstate__`
    explicit Spec(StructureBuilder &&builder);
    Spec(Spec &&other) noexcept { swap(other); }
    Spec &operator=(Spec &&) = delete;
    ~Spec() {
        leave_cache();
        if (!is_empty()) clear();
    }
    void swap(Spec &other) noexcept {
        std::swap(class_marks_, other.class_marks_);
        std::swap(structure_, other.structure_);
        swap_shared(hash_, other.hash_);
        swap_shared(paths_, other.paths_);
        swap_shared(bytes_of_paths_, other.bytes_of_paths_);
    }

    bool is_empty() const { return structure_.num_nodes == 0; }
    // ValueError for an empty spec: one that was never restored, or that the collector cleared.
    const Structure &structure() const {
        if (is_empty()) [[unlikely]]
            fail_empty();
        return structure_;
    }
    const Structure &structure_or_empty() const { return structure_; }
    size_t size_in_bytes() const {
        return structure_.num_nodes * sizeof(Node) + structure_.num_refs * sizeof(PyObject *);
    }

    // Equal structures have equal hashes, in every process. Classes count by their names; keys, and values of meta
    // fields and aux_data, only if they are strings, by their text. (So a key that is no string, but equal to one,
    // makes an equal structure of another hash.)
    Py_hash_t hash() const;
    // Whether the structures are equal; an empty spec equals itself alone. Runs the `==` of keys and aux_data.
    bool equals(const Spec &other) const {
        return this == &other || (!is_empty() && !other.is_empty() && are_equal(structure_, other.structure_));
    }
    // Whether the dicts of two equal specs were filled in the same order.
    bool is_same_order(const Spec &other) const { return have_same_order(structure(), other.structure()); }
    // Whether a function of a tree can't tell the structures apart (structure/compare.h). Implies `is_same_order`, and
    // that the specs are equal but for NaN and partials.
    bool is_interchangeable(const Spec &other) const {
        return this == &other ||
               (!is_empty() && !other.is_empty() && are_interchangeable(structure_, other.structure_));
    }
    // A tuple of the paths of the leaves, made at first use and kept. Null if they would take too much memory.
    nb::object keep_paths();
    size_t bytes_of_paths() const { return bytes_of_paths_.load(std::memory_order_relaxed); }
    void forget_paths() {
        bytes_of_paths_.store(0, std::memory_order_relaxed);
        nb::steal(take_paths()).reset();
    }

    // Whether there is a node of this class, which need not exist any more. Only addresses are compared.
    bool has_nodes_of(PyTypeObject *type);

    // structure/text.h
    std::string text(SpecText which = SpecText::kWhole) const { return spec_text(structure_, which); }

    int traverse(visitproc visit, void *arg) const;
    // For the collector: releases everything, except for a spec in the cache, which code that runs while garbage is
    // being destroyed could get from there. Like a tuple it need not be cleared: it refers only to older objects.
    void clear_garbage() {
        if (slot_ < 0) clear();
    }

    // Only for the cache, and while nobody else has the spec. Counts no reference.
    void set_ref(uint32_t i, PyObject *ref) { const_cast<PyObject **>(structure_.refs)[i] = ref; }
    // Returns what stood there.
    nb::object replace_ref(uint32_t i, nb::object ref) {
        hash_.store(-1, std::memory_order_relaxed);
        forget_paths();
        nb::object old = nb::steal(structure_.all_refs()[i]);
        set_ref(i, ref.release().ptr());
        return old;
    }
    void set_slot(int slot, const void *cache) { slot_ = slot, cache_ = cache; }
    // Whether the next walk may follow it.
    bool is_in_cache() const { return slot_ >= 0; }

private:
    [[noreturn]] static void fail_empty();
    // Releases everything. A spec is immutable otherwise.
    void clear();
    // Leaves the structure to the cache, if the cache knows this spec: cache.cpp.
    void leave_cache();

    // Of two specs that nobody else has.
    template <class T>
    static void swap_shared(std::atomic<T> &a, std::atomic<T> &b) {
        const T value = a.load(std::memory_order_relaxed);
        a.store(b.load(std::memory_order_relaxed), std::memory_order_relaxed);
        b.store(value, std::memory_order_relaxed);
    }
    // Of a spec that nobody else has.
    PyObject *take_paths() {
        PyObject *const paths = paths_.load(std::memory_order_relaxed);
        paths_.store(nullptr, std::memory_order_relaxed);
        return paths;
    }

    Structure structure_ = {};
    uint64_t class_marks_ = 0;  // a bit for the address of each class of nodes; 0: not made yet
    // Found at first use. Two threads may both find them; the paths that come first stay.
    mutable std::atomic<Py_hash_t> hash_ = -1;
    std::atomic<PyObject *> paths_ = nullptr;
    std::atomic<size_t> bytes_of_paths_ = 0;
    int slot_ = -1;                // in the cache
    const void *cache_ = nullptr;  // the one in which it has the slot: see OwnOfThread
};

// A new PyDagSpec.
nb::object make_spec(Spec &&spec);
// The spec in a Python object; TypeError if it isn't one.
const Spec &spec_of(nb::handle object);

// The state that pickles (pickle.cpp), and back: everything is checked, ValueError or TypeError says what is wrong.
nb::object state_of(const Spec &spec);
void restore_state(nb::handle state, StructureBuilder &builder);

}  // namespace pydag
