// SPDX-License-Identifier: Apache-2.0
//
// How a class is opened and built: by two functions, or by its fields, which the core reads and writes.
#pragma once

#include "base/box.h"
#include "types/learned.h"
#include "types/stand_in.h"

#include <atomic>
#include <memory>
#include <vector>

namespace pydag {

// Where an attribute of a `register_fields` class is kept. That is settled when the class is first
// used, whatever is done to the class later: slots stay where they are.
struct FieldAccess {
    nb::object name;    // interned
    Py_ssize_t offset;  // of a `__slots__` member within the instance; 0: it is in `__dict__`
};

struct Registration {
    nb::object type;
    nb::object namespace_;  // str; "" is the global one
    nb::object flatten;     // (object) -> (children, aux_data[, entries]); None where no instance needs it
    nb::object unflatten;   // (aux_data, children) -> object; None likewise
    nb::object path_entry_type;
    // For a class of another library whose `flatten` also asks for the names of the children: the library's own
    // function, and the names that all instances give to their children, None if they give none, or
    // (object, count) -> these names where they may depend on the instance. Null for other classes.
    nb::object library_flatten, names;
    // For such a class whose names the library gives as keys beside the children: (object) -> (pairs, aux_data), or
    // None; and which keys hold a name, three items each: the class of the key, its attribute that has the name, and
    // the class of the name. A name that isn't among them is asked for by `names`. Null for other classes.
    nb::object open_with_keys, plain_keys;
    nb::object resolve_fields;  // () -> (data, slots, meta[, cached]), until fields are first used
    nb::object data;            // Keys of the data fields; None: all attributes of the instance
    nb::object meta_names;      // tuple of str
    std::vector<FieldAccess> data_access, slot_access, meta_access;
    // What a lazy attribute, such as a `functools.cached_property`, has stored in `__dict__` is no field, unless it was
    // named.
    std::vector<FieldAccess> cached_access;
    mutable LearnedByWalks learned;
    bool has_identity = true;
    // Leaves below an instance have no identity: nothing else is between them and the instance, or tuples.
    bool leaves_are_values = false;
    bool is_fields = false;           // opened and built by its fields, not by two functions
    bool is_module = false;           // to the JAX boundary the numbers that it holds are configuration
    bool is_foreign = false;          // registered with another library
    bool has_distinct_slots = false;  // no `__slots__` member goes by two names
    bool has_only_slots = false;      // the fields were named, and each is a `__slots__` member; they are distinct
    // Only an instance whose `__dict__` has exactly the fields is opened by them. Any other instance is opened by
    // `flatten`, since only the library that registered the class knows what else there may be.
    bool is_strict = false;
    // Opens and builds instances where it can; else the two functions do. Null: they always do.
    // A caller that lets it run Python code owns it meanwhile.
    std::shared_ptr<StandIn> stand_in;
    // Where the fields were named: whether an instance must have no other attributes, which would be lost.
    bool must_have_just_fields() const { return is_strict || !is_foreign; }
    auto python_refs() {
        return std::tie(type, namespace_, flatten, unflatten, path_entry_type, resolve_fields, data, meta_names,
                        library_flatten, names, open_with_keys, plain_keys);
    }
};
// The names within the FieldAccess vectors and the TakenNames are strings, which can't be part of a
// cycle. A stand-in holds strings, and what its library has for as long as it is loaded.
static_assert(sizeof(Registration) == 12 * sizeof(nb::object) + 4 * sizeof(std::vector<int>) + sizeof(LearnedByWalks) +
                                          8 + sizeof(std::shared_ptr<StandIn>),
              "list the new member in python_refs()");
using RegistrationBox = Box<Registration>;

// This and the names may be set after a registration was made: the library says them only when it is asked.
inline nb::object path_entry_type_of(PyObject *box) {
    const Locked locked(box);
    return RegistrationBox::of(box).path_entry_type;
}

// Whether two registrations open and build a class in the same way: that of a class of another
// library may have been read twice.
bool same_registration(nb::handle a, nb::handle b);

// The registrations that were made with pydag itself, by class and namespace.
//
// A class is found by its address; its registration owns the class. This is no dict, because a dict would
// call the `__hash__` and `__eq__` of a metaclass, and others could find the dict and change it. All threads share it,
// and ask it only for classes that they haven't seen before.

// The registration of a class in just this namespace, an exact str; null if there is none.
nb::object find_own(nb::handle namespace_, nb::handle type);
// False, and nothing is added, where there is one.
bool add_own(nb::handle registration);
// Removes it and returns it; null where there is none.
nb::object remove_own(nb::handle namespace_, nb::handle type);

// A list of (namespace, class) for each of them, in no order.
nb::object registered_classes();

}  // namespace pydag
