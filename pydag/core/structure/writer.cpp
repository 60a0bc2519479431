// SPDX-License-Identifier: Apache-2.0
#include "structure/writer.h"

#include "base/interrupt.h"
#include "structure/node_refs.h"

#include <algorithm>

namespace pydag {

void StructureWriter::add(Node node, PyObject *const *refs) {
    const uint32_t position = result_.add(node.kind, node.count);
    note(position, node.count);
    result_.add_refs(refs, num_refs(node));
    result_.num_leaves += node.is_leaf();
}

void StructureWriter::repeat(uint32_t position) {
    Buffer<uint32_t, 24> pending;
    pending.push(position);
    while (!pending.empty()) {
        interruptible_step();
        const uint32_t next = pending.pop();
        const Node node = result_.nodes[next];
        if (node.is_alias()) {
            add_alias(node.count);
        } else if (has_identity(node.kind, refs_at(next))) {
            result_.nodes[next].is_anchor = true;
            add_alias(next);
        } else {
            add_copy(next);
            uint32_t *const slots = pending.extend(node.count);
            uint32_t child = next + 1;
            for (uint32_t i = node.count; i-- > 0; child = written_[child].end) slots[i] = child;
        }
    }
}

void StructureWriter::finish(bool none_is_leaf, nb::object namespace_) {
    if (has_aliases_) number_anchors(result_);
    result_.none_is_leaf = none_is_leaf;
    result_.namespace_ = std::move(namespace_);
}

void StructureWriter::add_alias(uint32_t target) {
    has_aliases_ = true;
    note(result_.add(Kind::kAlias, target), 0);
}

// The references are copied first, since those of the result may move when a reference is added.
void StructureWriter::add_copy(uint32_t position) {
    PyObject *copies[kMostRefs];
    const Node node = result_.nodes[position];
    std::copy_n(refs_at(position), num_refs(node), copies);
    add(node, copies);
}

void StructureWriter::note(uint32_t position, uint32_t num_children) {
    written_.push({0, static_cast<uint32_t>(result_.refs.size())});
    around_.add(position, num_children, [&](uint32_t complete) { written_[complete].end = this->position(); });
}

void SubtreeCopier::copy(uint32_t slot, StructureWriter &writer) {
    Buffer<uint32_t, 48> pending;
    pending.push(slot);
    ++round_;
    while (!pending.empty()) {
        interruptible_step();
        const uint32_t position = source_.resolve(pending.pop());
        const Node node = source_.node(position);
        if (node.is_anchor) {
            Copy &copy = copies_[source_.number(position)];
            if (copy.round == round_) {
                writer.repeat(copy.position);
                continue;
            }
            copy = {round_, writer.position()};
        }
        writer.add(node, source_.refs(position));
        source_.push_slots(position, pending, [](uint32_t child) { return child; });
    }
}

void SubtreeCopier::copy(uint32_t slot, StructureBuilder &result) {
    StructureWriter writer(result);
    copy(slot, writer);
    writer.finish(source_.structure.none_is_leaf, nb::borrow(source_.structure.namespace_));
}

}  // namespace pydag
