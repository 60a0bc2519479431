// SPDX-License-Identifier: Apache-2.0
#include "rewrites/redirect.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "structure/node_refs.h"
#include "structure/paths.h"

namespace pydag {

void RedirectedWalk::run() {
    pending_.push({0, 0});
    while (!pending_.empty()) {
        interruptible_step();
        visit(pending_.pop());
    }
    if (has_aliases_) number_anchors(result_);
    result_.num_leaves = static_cast<uint32_t>(result_leaves_.size());
    result_.none_is_leaf = tree_.structure.none_is_leaf;
    result_.namespace_ = nb::borrow(tree_.structure.namespace_);
}

void RedirectedWalk::visit(const Task &task) {
    const auto close = [this](const Task &done) { written_.at({done.slot, done.copy}).state = State::kDone; };
    uint32_t slot = task.slot, copy = task.copy;
    if (const auto found = redirects_.find(slot); found != redirects_.end()) {
        slot = found->second.target;
        if (found->second.is_copy) copy = ++num_copies_;
    }
    const uint32_t node = tree_.resolve(slot);
    const auto known = written_.find({node, copy});
    if (known != written_.end() && known->second.state == State::kOpen) fail_cycle(task.slot, node);
    if (known != written_.end() && has_identity(node)) {
        result_.nodes[known->second.position].is_anchor = has_aliases_ = true;
        result_.add(Kind::kAlias, known->second.position);
        return around_.add_closed(close);
    }
    write(node, copy);
    tree_.push_slots(node, pending_, [=](uint32_t child) { return Task{child, copy}; });
    around_.add({node, copy}, num_children(tree_.node(node)), close);
}

void RedirectedWalk::write(uint32_t node, uint32_t copy) {
    const Node source = tree_.node(node);
    const uint32_t position = result_.add(source.kind, source.count);
    result_.add_refs(tree_.refs(node), num_refs(source));
    written_.insert_or_assign({node, copy}, Record{State::kOpen, position});
    if (!source.is_leaf()) return;
    PyObject *const leaf = leaves_[tree_.leaf(node)];
    if (copy > 0) result_leaves_.push_new(call(copy_leaf_, nb::handle(leaf)));
    else result_leaves_.push_borrowed(leaf);
}

bool RedirectedWalk::has_identity(uint32_t node) const {
    const Node source = tree_.node(node);
    if (source.is_leaf())
        return options_.leaf_identity && options_.space->find_class_of(leaves_[tree_.leaf(node)]).identity;
    return pydag::has_identity(source.kind, tree_.refs(node));
}

void RedirectedWalk::fail_cycle(uint32_t slot, uint32_t node) const {
    fail(cycle_error,
         "an object would contain itself: what stands at %s would stand at %s\n"
         "  A structure with a cycle is not a DAG.",
         path_of(tree_.structure, node).c_str(), path_of(tree_.structure, slot).c_str());
}

}  // namespace pydag
