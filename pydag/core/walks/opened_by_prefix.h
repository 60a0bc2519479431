// SPDX-License-Identifier: Apache-2.0
//
// Which objects of a tree the nodes of a prefix open. No predicate is asked about these, wherever else an object
// that has identity stands. A value, such as a tuple, is asked about at each place that no node of the prefix meets:
// so values are known by the way to them.
#pragma once

#include "structure/placed_structure.h"

#include <unordered_map>

namespace pydag {

class OpenedByPrefix {
public:
    static constexpr uint32_t kNoParent = UINT32_MAX;

    // Holds the tree against the prefix. ValueError where it doesn't fit.
    OpenedByPrefix(const Structure &prefix, nb::handle tree);

    // Whether the prefix opens the object that a walk over the tree meets now, as this child of the node that it wrote
    // at `parent`. To be asked before `add`.
    bool opens(PyObject *object, bool has_identity, uint32_t parent, uint32_t child);
    // The object that was asked about last is written as this node.
    void add(uint32_t position, Node node, PyObject *const *refs);

private:
    using Partners = std::vector<uint32_t>;  // nodes of the prefix, no leaves
    const PlacedStructure prefix_;
    RefBuffer<48> kept_;                                               // what is known by address
    std::unordered_map<PyObject *, Partners> of_object_;               // all that an object meets
    std::unordered_map<uint32_t, std::vector<Partners>> of_children_;  // of each child of a node that was written
    Partners current_;                                                 // of the object that was asked about last
};

}  // namespace pydag
