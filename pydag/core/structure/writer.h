// SPDX-License-Identifier: Apache-2.0
//
// Writes a structure from the root down. An object that was written before can be written again: as an alias, or, if it
// is a value, as a copy with shared parts. The result is the structure that flattening the objects would give.
#pragma once

#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/indexed_structure.h"

namespace pydag {

class StructureWriter {
public:
    explicit StructureWriter(StructureBuilder &result) : result_(result) {}

    // The position that the next node will have.
    uint32_t position() const { return static_cast<uint32_t>(result_.nodes.size()); }
    // Writes a node; its children are written next. Ignores whether `node` is an anchor: `repeat` makes anchors.
    void add(Node node, PyObject *const *refs);
    void add_leaf() { add({Kind::kLeaf, false, 0, 0}, nullptr); }
    // Writes the subtree at an earlier position again. It must be complete.
    void repeat(uint32_t position);
    // To be called once, after the last node.
    void finish(bool none_is_leaf, nb::object namespace_);

private:
    struct Written {
        uint32_t end, ref;  // behind the node's subtree; its first reference
    };
    PyObject *const *refs_at(uint32_t position) const { return result_.refs.data() + written_[position].ref; }
    void add_alias(uint32_t target);
    void add_copy(uint32_t position);
    void note(uint32_t position, uint32_t num_children);

    StructureBuilder &result_;
    Buffer<Written, 96> written_;
    Nesting<uint32_t> around_;  // by position
    bool has_aliases_ = false;
};

// Copies subtrees. An alias whose anchor lies outside becomes the anchor, and an object that only one slot of the copy
// holds is no longer shared.
class SubtreeCopier {
public:
    explicit SubtreeCopier(const IndexedStructure &source) : source_(source), copies_(source.anchors.size()) {}

    // Writes the subtree in a slot of the source. Two calls share nothing: each writes its own anchors.
    void copy(uint32_t slot, StructureWriter &writer);
    // Makes a structure of its own from the subtree in a slot, with the options of the source.
    void copy(uint32_t slot, StructureBuilder &result);

private:
    struct Copy {
        uint32_t round = 0, position = 0;
    };
    const IndexedStructure &source_;
    std::vector<Copy> copies_;  // of each anchor, by its number
    uint32_t round_ = 0;
};

// Rewrites a structure: `write(cursor)` writes the node that replaces a node, without its children, or the subtree that
// replaces a leaf. One object remains one object, unless a value replaces it.
template <class Write>
void rewrite(const Structure &structure, StructureWriter &writer, Write write) {
    Buffer<uint32_t, 16> anchors;  // where each is written, by its number
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        if (at.node().is_alias()) {
            writer.repeat(anchors[at.node().count]);
            continue;
        }
        if (at.node().is_anchor) anchors.push(writer.position());
        write(at);
    }
}

}  // namespace pydag
