// SPDX-License-Identifier: Apache-2.0
//
// Writes down the structure of a walk: its nodes, and the references that they keep.
//
// Most trees have been seen before. So a walk follows a remembered structure: as long as it meets
// the very nodes and references that stand there, nothing is written and nothing is owned. At the
// first difference what was followed so far is copied, and from then on everything is written.
#pragma once

#include "structure.h"

namespace pydag {

// The references. Also used alone, to open an object that is held against a structure.
class RefLog {
public:
    RefLog(RefBuffer<48> &written, PyObject *const *expected, size_t num_expected)
        : written_(written), expected_(expected), num_expected_(num_expected), follows_(expected != nullptr) {}

    bool follows() const { return follows_; }
    // The reference that comes next, or the one `ahead` behind it, if the walk goes on as
    // remembered; else null.
    PyObject *expected(size_t ahead = 0) const {
        return follows_ && size_ + ahead < num_expected_ ? expected_[size_ + ahead] : nullptr;
    }
    void add(PyObject *ref) {
        if (ref == expected()) [[likely]]
            ++size_;
        else write(nb::borrow(ref));
    }
    // The same where `ref` is known to be `expected()`.
    void confirm() { ++size_; }
    void add_new(nb::object ref) {
        if (ref.ptr() == expected()) [[likely]]
            ++size_;
        else write(std::move(ref));
    }
    void stop_following() {
        if (!follows_) return;
        follows_ = false;
        for (size_t i = 0; i < size_; ++i) written_.push_borrowed(expected_[i]);
    }
    PyObject *const *data() const { return follows_ ? expected_ : written_.data(); }

private:
    void write(nb::object ref) {
        stop_following();
        written_.push_new(std::move(ref));
    }

    RefBuffer<48> &written_;
    PyObject *const *expected_;
    size_t num_expected_, size_ = 0;
    bool follows_;
};

class Recorder {
public:
    // `remembered` may be empty: then everything is written to `draft`.
    Recorder(Draft &draft, const Structure &remembered)
        : draft_(draft),
          remembered_(remembered),
          follows_(remembered.num_nodes > 0),
          refs_(draft.refs, remembered.refs, remembered.num_refs) {}

    RefLog &refs() { return refs_; }
    uint32_t size() const { return size_; }
    // What has been recorded so far; `count` of a node that is being opened is not.
    const Node *nodes() const { return follows_ ? remembered_.nodes : draft_.nodes.data(); }
    PyObject *const *recorded_refs() const { return refs_.data(); }

    // Returns the position of the new node.
    uint32_t add(Kind kind) {
        if (follows_) [[likely]] {
            // There is a next node: as many are to come as there were, where all counts agree.
            const Node node = remembered_.nodes[size_];
            if (node.kind == kind) [[likely]] {
                if (node.is_anchor) [[unlikely]]
                    anchors_.push(size_);
                return size_++;
            }
            stop_following();
        }
        draft_.add(kind, 0);
        return size_++;
    }
    void add_leaf() {
        if (follows_ && is_plain_leaf(remembered_.nodes[size_])) [[likely]]
            ++size_;
        else add(Kind::kLeaf);
    }
    // The number of children of an opened node, when its references have been added.
    void set_count(uint32_t node, uint32_t count) {
        if (follows_) [[likely]] {
            if (remembered_.nodes[node].count == count && refs_.follows()) [[likely]]
                return;
            stop_following();
        }
        draft_.nodes[node].count = count;
    }
    // A later occurrence of the object at node `target`.
    void add_alias(uint32_t target) {
        if (follows_) {
            const Node node = remembered_.nodes[size_];
            if (node.kind == Kind::kAlias && anchors_[node.count] == target) {
                ++size_;
                return;
            }
            stop_following();
        }
        write_alias(target);
        ++size_;
    }

    // True: the walk went as remembered, and nothing was written. Else the draft is complete.
    bool finish() {
        if (follows_) return true;
        if (has_aliases_) number_anchors(draft_);
        return false;
    }

private:
    static bool is_plain_leaf(Node node) {
        constexpr Node leaf = {Kind::kLeaf, false, 0, 0};
        return std::memcmp(&node, &leaf, sizeof node) == 0;
    }
    void write_alias(uint32_t target) {
        draft_.nodes[target].is_anchor = true;
        draft_.add(Kind::kAlias, target);
        has_aliases_ = true;
    }
    // An anchor counts only from the moment on when this walk, too, has met it again.
    void stop_following() {
        follows_ = false;
        refs_.stop_following();
        draft_.nodes.reserve(size_);
        for (uint32_t i = 0; i < size_; ++i) {
            const Node node = remembered_.nodes[i];
            if (node.kind == Kind::kAlias) write_alias(anchors_[node.count]);
            else draft_.add(node.kind, node.count);
        }
    }

    Draft &draft_;
    const Structure remembered_;
    bool follows_, has_aliases_ = false;
    uint32_t size_ = 0;
    RefLog refs_;
    Buffer<uint32_t, 16> anchors_;  // the positions of the remembered anchors that were passed
};

}  // namespace pydag
