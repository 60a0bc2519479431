// SPDX-License-Identifier: Apache-2.0
//
// The references of a structure as plain picklable objects, and back. Keys are written as (the keys in insertion order,
// None or the index of each in traversal order), registrations as (class, namespace), others as they are. All that is
// read is checked: errors are `Malformed` and name the reference by its index.
#pragma once

#include "base/error.h"
#include "base/tuples.h"
#include "structure/structure.h"

#include <vector>

namespace pydag {

// An error in a description of a structure that came from outside: a pickled state, or records of nodes.
class Malformed : public Complaint {
public:
    explicit Malformed(std::string text) : Complaint(PyExc_ValueError, std::move(text)) {}
};

inline void require(bool condition, const char *why) {
    if (!condition) throw Malformed(why);
}

// Runs `body`; where that finds something malformed, the error names the field: "nodes[3]: ...".
template <class Body>
decltype(auto) in_field(const char *list, size_t i, Body body) {
    try {
        return body();
    } catch (const Malformed &error) {
        throw Malformed(std::string(list) + "[" + std::to_string(i) + "]: " + error.text());
    }
}

// Whether an object is exactly a tuple, all of whose items are set.
inline bool is_tuple(nb::handle object) { return PyTuple_CheckExact(object.ptr()) && is_filled(object); }

// The distinct references of a structure, written out; and for each reference, in order, its index among these.
struct WrittenRefs {
    explicit WrittenRefs(const Structure &structure);

    nb::object refs;  // a tuple
    Buffer<uint32_t, 256> indices;
};

// References that are read. One that several nodes use in the same way is decoded once.
class EncodedRefs {
public:
    // The caller keeps the tuple alive as long as this.
    explicit EncodedRefs(nb::handle refs);

    size_t size() const { return decoded_.size(); }
    // Checks the references of a node, which are those at these indices, by their roles, and adds them to `refs`.
    void decode(Node node, const size_t *indices, Refs &refs);

private:
    // What a reference is used as; for a registration and a class, also the kind of the nodes that use it.
    struct Use {
        Role role = Role::kNothing;
        Kind kind = Kind::kLeaf;
        bool operator==(const Use &) const = default;
    };
    struct Decoded {
        Use use;
        nb::object object;
    };
    nb::object decoded(size_t index, Use use);
    nb::object decode_ref(Node node, Role role, size_t index, nb::handle registration);
    nb::object decode_names(Node node, size_t index, nb::handle registration);

    nb::handle refs_;
    std::vector<Decoded> decoded_;
};

}  // namespace pydag
