// SPDX-License-Identifier: Apache-2.0
//
// What the library knows about classes: which are nodes, in which namespace, and how they are
// opened and built.
//
// A class is looked up once per namespace and remembered by address. The memory is emptied when
// anything is registered or unregistered, here or with another library, and when a remembered
// class dies: its address may be given to another one.
#pragma once

#include "base/box.h"
#include "types/kind.h"
#include "types/taken_names.h"

#include <vector>

namespace pydag {

// Where an attribute of a `register_fields` class is kept. That is settled when the class is first
// used, whatever is done to the class later: slots stay where they are.
struct FieldAccess {
    nb::object name;    // interned
    Py_ssize_t offset;  // of a `__slots__` member within the instance; 0: it is in `__dict__`
};

// A field that is found in the `__dict__` of instances.
struct FieldPlace {
    PyObject *name;  // borrowed from the FieldAccess
    uint32_t index;  // among the data fields or the meta fields
    bool is_meta;
};

struct Registration {
    nb::object type;
    nb::object namespace_;  // str; "" is the global one
    nb::object flatten;     // (object) -> (children, aux_data[, entries]); None for fields
    nb::object unflatten;   // (aux_data, children) -> object; None for fields
    nb::object path_entry_type;
    nb::object resolve_fields;  // () -> (data, slots, meta), until fields are first used
    nb::object data;            // Keys of the data fields; None: all attributes of the instance
    nb::object meta_names;      // tuple of str
    std::vector<FieldAccess> data_access, slot_access, meta_access;
    // The named fields that aren't slots, in the order in which the last instance had them.
    mutable std::vector<FieldPlace> dict_order;
    mutable TakenNames taken_names;
    bool has_identity = true;
    bool is_foreign = false;      // registered with another library
    bool has_only_slots = false;  // the fields were named, and each is a `__slots__` member
    auto python_refs() {
        return std::tie(type, namespace_, flatten, unflatten, path_entry_type, resolve_fields, data, meta_names);
    }
    bool is_fields() const { return flatten.is_none(); }
};
// The names within the FieldAccess vectors and the TakenNames are strings, which can't be part of a
// cycle.
static_assert(sizeof(Registration) == 8 * sizeof(nb::object) + 4 * sizeof(std::vector<int>) + sizeof(TakenNames) + 8,
              "list the new member in python_refs()");
using RegistrationBox = Box<Registration>;

// Whether `is` means something for the instances of a class.
enum Identity : uint8_t { kNoIdentity = 0, kObjectLeaf = 1, kObjectNode = 2 };

struct TypeInfo {
    PyObject *registration;  // borrowed; null for leaves and builtin nodes
    Kind kind;
    Identity identity;
};

class TypeTable;

// The classes as one namespace sees them.
class Namespace {
public:
    // `name`: a str. Raises TypeError for anything else.
    static Namespace &get(nb::handle name);
    nb::handle name() const { return name_; }

    // What the class of `object` is here. On first sight this runs Python code; after that none.
    // The result holds until Python code runs. The caller owns `object`.
    TypeInfo find_class_of(PyObject *object) {
        const Recent &recent = recent_[place(Py_TYPE(object))];
        return recent.type == Py_TYPE(object) ? recent.info : look_up_class_of(object);
    }

    // The same for a class that the caller owns.
    TypeInfo find(PyTypeObject *type) {
        const Recent &recent = recent_[place(type)];
        return recent.type == type ? recent.info : find_in_table(type);
    }

    // The same without running Python code; null where that is needed.
    const TypeInfo *find_known(PyTypeObject *type) {
        const Recent &recent = recent_[place(type)];
        return recent.type == type ? &recent.info : find_known_in_table(type);
    }

    // Whether optree was told to keep the insertion order of dicts in this namespace, or in all.
    bool is_dict_insertion_ordered() const;
    // Whether it was told so of this very namespace. Never of the one without a name.
    bool is_ordered_itself() const;

private:
    friend void forget_types();
    struct Recent {
        PyTypeObject *type;
        TypeInfo info;
    };
    static constexpr int kRecentBits = 6;
    static size_t place(PyTypeObject *type) { return hash_address(type) >> (64 - kRecentBits); }
    TypeInfo look_up_class_of(PyObject *object);
    TypeInfo find_in_table(PyTypeObject *type);
    const TypeInfo *find_known_in_table(PyTypeObject *type);
    TypeInfo look_up(PyTypeObject *type);
    nb::object name_;
    TypeTable *table_ = nullptr;
    Recent recent_[size_t{1} << kRecentBits] = {};  // what the table said last, without a probe
};

void make_registry();  // when the module is made

// Adds a registration. Raises ValueError if the class has one in that namespace.
void add_registration(nb::object registration);
// Takes it out again and returns it; ValueError if there is none.
nb::object remove_registration(nb::handle type, nb::handle namespace_);
// The registration of a class as seen from `namespace_`; null if it isn't a registered node there.
nb::object find_registration(nb::handle type, nb::handle namespace_);

// Whether two registrations open and build a class in the same way. A class of another library may
// have had its registration read twice.
bool same_registration(nb::handle a, nb::handle b);

// Python's part of the lookup: `find_foreign(cls, namespace)` answers None or (flatten, unflatten,
// path_entry_type) for a class registered with another library in exactly that namespace;
// `classify_leaf(cls)` answers "namedtuple", "structseq", "value" or "object";
// `is_insertion_ordered(namespace, or_global)` answers a bool.
void set_lookup(nb::object find_foreign, nb::object classify_leaf, nb::object is_insertion_ordered);
// Forgets what was looked up whenever `dict` changes.
void watch_registry(nb::handle dict);
void forget_types();

}  // namespace pydag
