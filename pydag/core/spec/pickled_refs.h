// SPDX-License-Identifier: Apache-2.0
//
// The references in the pickled state of a spec, decoded. Nothing in a state is believed.
#pragma once

#include "base/tuples.h"
#include "spec/spec.h"

#include <vector>

namespace pydag {

// Whether an object is a tuple that can be read: an exact one, and with all of its items.
inline bool is_tuple(nb::handle object) { return PyTuple_CheckExact(object.ptr()) && is_filled(object); }

// The references of a state. What is written out is decoded once for each way in which it is used.
class StateRefs {
public:
    // A tuple and bytes, which the caller owns meanwhile.
    StateRefs(nb::handle refs, nb::handle places);

    // Goes on to the references of the next node.
    void advance(size_t num_refs);
    PyObject *operator[](size_t i) const { return PyTuple_GET_ITEM(refs_.ptr(), current_[i]); }
    // Keys, a registration, and the number of fields of a tuple class, from the i-th of them.
    nb::object keys(size_t i, bool sorted) { return decoded(i, {sorted ? Role::kSortedKeys : Role::kKeys}); }
    nb::object registration(size_t i, Kind kind) { return decoded(i, {Role::kRegistration, kind}); }
    nb::object tuple_size(size_t i, Kind kind) { return decoded(i, {Role::kClass, kind}); }
    // Refuses what no node has used.
    void finish() const;

private:
    // What it is used as; of a class, by nodes of which kind.
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
        const size_t place = current_[i];
        if (decoded_[place].use != use) decode(place, use);
        return decoded_[place].object;
    }
    void decode(size_t place, Use use);
    static nb::object decode_ref(Use use, nb::handle state);

    nb::handle refs_;
    size_t count_, width_;
    const unsigned char *places_;
    size_t num_places_, next_ = 0;
    size_t current_[kMostRefs] = {};  // the places of the references of this node
    std::vector<Decoded> decoded_;
    std::vector<char> used_;  // 1: by some node
};

}  // namespace pydag
