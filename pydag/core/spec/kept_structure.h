// SPDX-License-Identifier: Apache-2.0
//
// A structure that no spec owns any more, kept for the next tree that has it.
//
// It keeps no object of the user's alive: its references are small constants, registrations, the marks by which a
// library says what is a child, and builtin classes. It has weak references to the classes of namedtuples, and is of no
// use once one of them is gone. The answers of nodes that must be asked (structure/node_refs.h) are left out, except
// for a few small constants.
#pragma once

#include "spec/spec.h"

#include <vector>

namespace pydag {

// What a structure holds, as far as that decides whether it can be kept.
struct Holdings {
    struct Class {
        uint32_t ref;  // where it stands among the references
        nb::object weakref;
    };
    bool may_be_kept = false;
    size_t num_bytes = 0;
    std::vector<Class> classes;     // that must not be owned
    std::vector<uint32_t> answers;  // where references stand that are left out
};
// May run Python code: a collection of garbage. Without memory nothing may be kept.
Holdings holdings_of(const Structure &structure);

class KeptStructure {
public:
    bool is_empty() const { return spec_.is_empty(); }
    bool has_nodes_of(PyTypeObject *type) { return spec_.has_nodes_of(type); }
    // Takes the structure from `from` if it may be kept and there is room.
    void put(Spec &from, Holdings &&holdings);
    // Gives it back to `to`, which is empty, unless one of its classes is gone.
    Holdings take(Spec &to);
    // Gives it up, for the caller to release: that may run Python code.
    Spec give_up();

private:
    Spec spec_;  // without a reference to the classes in it that must not be owned
    Holdings holdings_;
    size_t num_bytes_ = 0;                                      // with the paths, if they are kept, too
    static inline PYDAG_OWN_OF_THREAD size_t total_bytes_ = 0;  // of all that are kept
};

}  // namespace pydag
