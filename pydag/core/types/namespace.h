// SPDX-License-Identifier: Apache-2.0
//
// What the library knows about classes: which are nodes, in which namespace.
//
// A class is looked up once per namespace and remembered by address, for as long as it lives
// (class_table.h). It is forgotten when it is registered or unregistered, here or with another library. Of a class
// that died nothing is kept but its entry, until the table needs room: no registration is, since that would keep the
// class alive. A namespace itself is forgotten if nobody is using it and there are many of them.
//
// Where threads run at the same time, each has namespaces of its own, and empties them at its next walk after another
// thread has registered something. So nobody waits, and what a namespace lends holds while its thread uses it.
#pragma once

#include "base/weak_reference.h"
#include "types/kind.h"

#include <memory>
#include <string>

namespace pydag {

// Whether `is` means something for the instances of a class.
enum Identity : uint8_t {
    kNoIdentity = 0,
    kObjectLeaf = 1,
    kObjectNode = 2,
    kLeafBelowAll = 4,  // also below a node whose leaves are values
    kLeafEverywhere = kObjectLeaf | kLeafBelowAll,
};

struct TypeInfo {
    PyObject *registration;  // borrowed; null for leaves and builtin nodes
    Kind kind;
    Identity identity;
};

struct TypeTable;
class NamespaceRef;

// The name of a namespace as UTF-8. TypeError for what is no str; ValueError for lone surrogates, which have no
// UTF-8 and which optree, whose registrations count here, can't look up.
std::string namespace_text(nb::handle name);

// The classes as one namespace sees them.
class Namespace {
public:
    // `name`: a str that has UTF-8. Raises TypeError or ValueError for anything else.
    static NamespaceRef get(nb::handle name);
    ~Namespace();
    nb::handle name() const { return name_; }
    // No two namespaces have the same one, even if one gets the name of another that is gone.
    uint64_t id() const { return id_; }
    bool is_used() const { return num_users_ > 0; }

    // What the class of `object` is here. On first sight this may run Python code; after that none.
    // The result holds until Python code runs. The caller owns `object`.
    TypeInfo find_class_of(PyObject *object) {
        const Recent &recent = recent_[recent_index(Py_TYPE(object))];
        return recent.is_of(Py_TYPE(object)) ? recent.info : look_up_class_of(object);
    }

    // The same for a class that the caller owns.
    TypeInfo find(PyTypeObject *type) {
        const Recent &recent = recent_[recent_index(type)];
        return recent.is_of(type) ? recent.info : find_in_table(type);
    }

    // The same without running Python code; null where that is needed.
    const TypeInfo *find_known(PyTypeObject *type) {
        const Recent &recent = recent_[recent_index(type)];
        return recent.is_of(type) ? &recent.info : find_known_in_table(type);
    }

    // Whether optree was told to keep the insertion order of dicts in this namespace, or in all.
    bool is_dict_insertion_ordered() const;
    // Whether the order was set in optree for this namespace alone. Never true for the one without a name.
    bool is_ordered_itself() const;

private:
    friend class NamespaceRef;
    friend void forget_own_types();
    friend void forget_type(PyTypeObject *type);
    Namespace(nb::handle name, uint64_t id);
    // A recent answer of the table.
    struct Recent {
        PyObject *type = nullptr;
        PyObject *const *address = &type;  // holds the class while it lives: here, or in a weak reference
        TypeInfo info = {};

        bool is_of(PyTypeObject *cls) const { return load_shared(*address) == as_object(cls); }
        void set(PyTypeObject *cls, nb::handle weakref, const TypeInfo &known) {
            type = as_object(cls);
            address = weakref.is_valid() ? referent_address(weakref) : &type;
            info = known;
        }
        void reset() {
            type = nullptr;
            address = &type;
        }
    };
    static constexpr int kRecentBits = 8;
    static size_t recent_index(PyTypeObject *type) { return hash_address(type) >> (64 - kRecentBits); }
    TypeInfo look_up_class_of(PyObject *object);
    TypeInfo find_in_table(PyTypeObject *type);
    const TypeInfo *find_known_in_table(PyTypeObject *type);
    const TypeInfo *learn_plain(PyTypeObject *type);
    void remember(PyTypeObject *type, nb::object weakref, const TypeInfo &info, nb::object registration);
    void forget_recent();
    void forget_recent(PyTypeObject *type);
    nb::object name_;
    uint64_t id_;
    uint32_t num_users_ = 0;
    std::unique_ptr<TypeTable> table_;         // null: nothing is known
    Recent recent_[size_t{1} << kRecentBits];  // each is of a class in the table, found without a probe
};

// Keeps a namespace while it is used.
class NamespaceRef {
public:
    NamespaceRef() = default;
    explicit NamespaceRef(Namespace &space) : space_(&space) { ++space.num_users_; }
    NamespaceRef(const NamespaceRef &other) : space_(other.space_) {
        if (space_) ++space_->num_users_;
    }
    NamespaceRef &operator=(NamespaceRef other) {
        std::swap(space_, other.space_);
        return *this;
    }
    ~NamespaceRef() {
        if (space_) --space_->num_users_;
    }
    Namespace &operator*() const { return *space_; }
    Namespace *operator->() const { return space_; }
    Namespace *get() const { return space_; }

private:
    Namespace *space_ = nullptr;
};

// Forgets all that was looked up. Needs no memory, so it can't fail.
void forget_types();
// Forgets what was looked up of one class, which need not exist any more; all classes where threads run at the same
// time. Can't fail either.
void forget_type(PyTypeObject *type);
// Forgets all for this thread alone.
void forget_own_types();
// How often something was forgotten, by any thread.
uint64_t types_generation();
// Sets the function that is called after a class was forgotten, or all of them: then it is given null. It must forget
// what was made of them: the cache of structures does, since its structures depend on what was registered.
void tell_when_types_are_forgotten(void (*listener)(PyTypeObject *type));

}  // namespace pydag
