// SPDX-License-Identifier: Apache-2.0
//
// Which objects of a tree the nodes of a prefix open. The predicate isn't asked about these. For an object with
// identity that holds at all of its slots. A value, such as a tuple, is asked about at each slot for which the
// prefix has no node, so a value is known by the path to it.
#pragma once

#include "structure/indexed_structure.h"

#include <unordered_map>

namespace pydag {

class OpenedByPrefix {
public:
    static constexpr uint32_t kNoParent = UINT32_MAX;

    // Matches the tree with the prefix; what the prefix shares doesn't count. ValueError if the tree doesn't fit.
    // Linear in the pairs of an object and a node.
    OpenedByPrefix(const Structure &prefix, nb::handle tree);

    // Finds the nodes of the prefix that open the object that a walk over the tree meets now, as this child of the
    // node that it wrote at `parent`. Returns whether there are any. To be called before `add`.
    bool find_partners(PyObject *object, bool has_identity, uint32_t parent, uint32_t child);
    // Says that the object of the last call of `find_partners` is written as this node.
    void add(uint32_t position, Node node, PyObject *const *refs);

private:
    using Partners = std::vector<uint32_t>;  // nodes of the prefix, no leaves
    const IndexedStructure prefix_;
    RefBuffer<48> kept_;                                               // objects that are known by address
    std::unordered_map<PyObject *, Partners> of_object_;               // those of an object, from all of its slots
    std::unordered_map<uint32_t, std::vector<Partners>> of_children_;  // of each child of a node that was written
    Partners current_;                                                 // of the object that was asked about last
};

}  // namespace pydag
