// SPDX-License-Identifier: Apache-2.0
//
// The references of a structure as plain picklable objects, and back. Most are picklable as they are. Keys are
// written as (the keys in insertion order, None or the index of each in traversal order), and registrations as
// (class, namespace). Whatever is read is checked: errors are `Malformed` and name the reference by its index.
#pragma once

#include "base/tuples.h"
#include "structure/structure.h"

#include <algorithm>
#include <span>
#include <vector>

namespace pydag {

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
    // Moves on to the next node, which has the references at these indices.
    void choose(std::span<const size_t> indices) { std::copy(indices.begin(), indices.end(), current_); }
    PyObject *operator[](size_t i) const { return PyTuple_GET_ITEM(refs_.ptr(), current_[i]); }
    // The i-th reference of the node, decoded as keys, as a registration, as the number of fields of a tuple class.
    nb::object keys(size_t i, Role role) { return decoded(i, {role}); }
    nb::object registration(size_t i, Kind kind) { return decoded(i, {Role::kRegistration, kind}); }
    nb::object tuple_size(size_t i, Kind kind) { return decoded(i, {Role::kClass, kind}); }

private:
    // What a reference is used as; for a class, also the kind of the nodes that use it.
    struct Use {
        Role role = Role::kNothing;
        Kind kind = Kind::kLeaf;
        bool operator==(const Use &) const = default;
    };
    struct Decoded {
        Use use;
        nb::object object;
    };
    const nb::object &decoded(size_t i, Use use) {
        const size_t index = current_[i];
        if (decoded_[index].use != use) decode(index, use);
        return decoded_[index].object;
    }
    void decode(size_t index, Use use);
    static nb::object decode_ref(Use use, nb::handle state);

    nb::handle refs_;
    size_t current_[kMostRefs] = {};  // the indices of the references of this node
    std::vector<Decoded> decoded_;
};

}  // namespace pydag
