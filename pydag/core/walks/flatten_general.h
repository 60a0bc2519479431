// SPDX-License-Identifier: Apache-2.0
//
// The general walk, in which Python code may run before or after any object.
#pragma once

#include "base/error.h"
#include "base/identity_table.h"
#include "base/interrupt.h"
#include "nodes/open.h"
#include "walks/flatten.h"
#include "walks/frames.h"
#include "walks/node_answers.h"
#include "walks/opened_by_prefix.h"
#include "walks/options.h"

#include <new>
#include <unordered_map>

namespace pydag {

class GeneralWalk {
public:
    // `answers`: of nodes that were asked before, or null.
    GeneralWalk(const FlattenOptions &options, StructureBuilder &builder, Leaves &leaves, NodeObjects *objects,
                NodeAnswers *answers = nullptr)
        : options_(options),
          builder_(builder),
          leaves_(leaves),
          objects_(objects),
          answers_(answers),
          open_options_{nullptr} {
        options.prepare(open_options_);
    }

    // Walks the whole tree; then the structure is finished.
    void run(PyObject *tree) {
        begin(tree);
        walk<false>();
        if (has_aliases_) number_anchors(builder_);
        options_.describe(builder_, leaves_.size(), has_registered_);
    }

    // Or walks in steps, each up to the next leaf. `advance` returns false after the last leaf. After an exception
    // it may be called again, and goes on behind the object that raised, unless the walk itself had no memory.
    void begin(PyObject *tree) { stack_.push_borrowed(tree); }
    // To be called before `advance` if the options have another space now.
    void take_space() { open_options_.space = options_.space.get(); }
    bool advance() { return walk<true>(); }

    int traverse(visitproc visit, void *arg) const {
        if (const int status = stack_.traverse(visit, arg)) return status;
        return kept_.traverse(visit, arg);
    }

private:
    template <bool stops_at_leaf>
    bool walk() {
        try {
            return visit_objects<stops_at_leaf>();
        } catch (const std::bad_alloc &) {
            // The walk stopped in the middle of a step, so the path isn't known, and the walk can't go on.
            frames_.resize_down(1);
            stack_.drop_to(0);
            throw;
        } catch (...) {
            rethrow_at([&] { return options_.roots.path(steps()); }, "flattening");
        }
    }

    // Visits the objects in the order in which they come from the stack.
    template <bool stops_at_leaf>
    bool visit_objects() {
        const size_t num_leaves = leaves_.size();
        while (const size_t size = stack_.size()) {
            if (stops_at_leaf && leaves_.size() > num_leaves) return true;
            if (frames_.back().base == size) {
                close_frame();
                continue;
            }
            height_ = size - 1;
            interruptible_step();
            nb::object object = stack_.pop_owned();
            const TypeInfo info = find_opened(object.ptr(), *options_.space);
            const uint8_t tracks = options_.tracked(frames_.back().leaves_are_values);
            const bool is_tracked = (info.identity & tracks) != 0;
            if (objects_) objects_->push_borrowed(object.ptr());
            const bool is_kept = options_.keeps(object);
            if (options_.is_leaf.is_valid() && !is_kept) {
                visit_asking(std::move(object), info, is_tracked, tracks);
                continue;
            }
            const bool is_leaf = is_kept || is_leaf_kind(info.kind);
            if (is_root() && pydag::is_leaf(info.kind) && !options_.kept) refuse_torch_module(object);
            visit(std::move(object), info, is_leaf, is_tracked);
        }
        return leaves_.size() > num_leaves;
    }

    bool is_leaf_kind(Kind kind) const {
        return is_leaf(kind) || (is_none(kind) && options_.none_is_leaf) ||
               (is_callback(kind) && !options_.opens_callbacks);
    }

    void visit(nb::object object, const TypeInfo &info, bool is_leaf, bool is_tracked) {
        if (is_tracked) {
            const uint32_t known = seen_.find_or_add(object.ptr(), num_nodes());
            if (known != IdentityTable::kNew) return add_alias(known, object);
        }
        if (!is_leaf) return add_container(std::move(object), info, is_tracked);
        builder_.add(Kind::kLeaf, 0);
        leaves_.push_new(std::move(object));
    }

    // Visits an object if there is a predicate. It is asked unless the object was met before.
    void visit_asking(nb::object object, const TypeInfo &info, bool is_tracked, uint8_t tracks) {
        if (is_tracked)
            if (const uint32_t known = seen_.find(object.ptr()); known != IdentityTable::kNew)
                return add_alias(known, object);
        // The predicate may unregister the class.
        const nb::object registration = nb::borrow(info.registration);
        const bool is_asked = !options_.prefix || !is_opened_by_prefix(object, is_tracked);
        const bool is_kept = is_asked && options_.ask_to_keep(object);
        if (is_root() && !is_kept && pydag::is_leaf(info.kind)) refuse_torch_module(object);
        const bool is_leaf = is_kept || is_leaf_kind(info.kind);
        const bool tracks_leaf = (tracks & (kObjectLeaf | (info.identity & kLeafBelowAll))) != 0;
        visit(std::move(object), info, is_leaf, is_tracked && (!is_leaf || tracks_leaf));
    }

    bool is_opened_by_prefix(nb::handle object, bool is_tracked) {
        const Frame &frame = frames_.back();
        const size_t child = is_root() ? 0 : builder_.nodes[frame.node].count - 1 - (height_ - frame.base);
        return options_.prefix->find_partners(
            object.ptr(), is_tracked, is_root() ? OpenedByPrefix::kNoParent : frame.node, static_cast<uint32_t>(child));
    }

    bool is_root() const { return frames_.size() == 1; }

    void close_frame() {
        const Frame frame = frames_.pop();
        if (frame.is_registered) leave(frame);
    }
    void leave(const Frame &frame) {
        if (frame.is_callback) --num_callbacks_;
        if (frame.untracked) open_untracked_.erase(frame.untracked);
    }

    void add_alias(uint32_t target, nb::handle object) {
        if (frames_.is_open(target)) fail_cycle(target, object);
        builder_.nodes[target].is_anchor = has_aliases_ = true;
        builder_.add(Kind::kAlias, target);
    }

    void add_container(nb::object object, const TypeInfo &info, bool is_tracked) {
        Frame frame = {num_nodes(), false, false, false, stack_.size(), nullptr};
        const size_t num_refs = builder_.refs.size();
        uint32_t count = 0;
        try {
            if (info.registration) admit(object, info, frame);
            builder_.add(info.kind, 0);
            count = answers_ ? answers_->open(object.ptr(), info, open_options_, stack_, builder_.refs)
                             : open_node(object.ptr(), info, open_options_, stack_, builder_.refs);
        } catch (...) {
            give_up(std::move(object), frame, num_refs);
            throw;
        }
        builder_.nodes[frame.node].count = count;
        frame.leaves_are_values =
            are_leaves_values(info.kind, builder_.refs.data() + num_refs, frames_.back().leaves_are_values);
        if (options_.prefix)
            options_.prefix->add(frame.node, builder_.nodes[frame.node], builder_.refs.data() + num_refs);
        // The identity table knows the object by its address, so it must stay alive. This comes before the frame is
        // pushed, so that a MemoryError is reported at the object itself.
        if (is_tracked || frame.untracked) kept_.push_new(std::move(object));
        if (count > 0 || frame.is_registered) frames_.push(frame);
    }

    // Checks and counts a registered node before it is opened.
    void admit(nb::handle object, const TypeInfo &info, Frame &frame) {
        has_registered_ = frame.is_registered = true;
        if (info.identity == kNoIdentity) {
            const auto [known, is_new] = open_untracked_.emplace(object.ptr(), frame.node);
            if (!is_new) fail_cycle(known->second, object);
            frame.untracked = object.ptr();
        }
        frame.is_callback = is_callback(info.kind);
        if (frame.is_callback && ++num_callbacks_ > Py_GetRecursionLimit())
            fail(PyExc_RecursionError, "Maximum recursion depth exceeded during flattening the tree.");
    }

    // Makes an object that could not be opened a leaf, for a walk that goes on.
    void give_up(nb::object object, const Frame &frame, size_t num_refs) {
        if (num_nodes() == frame.node) builder_.add(Kind::kLeaf, 0);
        builder_.nodes[frame.node] = {Kind::kLeaf, false, 0, 0};
        builder_.refs.drop_to(num_refs);
        stack_.drop_to(frame.base);
        leave(frame);
        kept_.push_new(std::move(object));  // the identity table may know it
    }

    [[noreturn]] void fail_cycle(uint32_t target, nb::handle object) {
        const std::string here = options_.roots.path(steps()), ancestor = options_.roots.path(steps(target));
        fail(cycle_error,
             "an object contains itself: %s is the %.200s at %s\n"
             "  A structure with a cycle is not a DAG. Break it, or keep the object whole with is_leaf.",
             here.c_str(), Py_TYPE(object.ptr())->tp_name, ancestor.c_str());
    }

    uint32_t num_nodes() const { return static_cast<uint32_t>(builder_.nodes.size()); }

    Steps steps(uint32_t stop = UINT32_MAX) const {
        return frames_.steps(builder_.nodes.data(), builder_.refs.data(), height_, stop);
    }

    const FlattenOptions &options_;
    StructureBuilder &builder_;
    Leaves &leaves_;
    NodeObjects *const objects_;
    NodeAnswers *const answers_;
    OpenOptions open_options_;
    bool has_registered_ = false, has_aliases_ = false;
    Stack stack_;
    size_t height_ = 0;  // of the stack below the object that is being visited
    Frames frames_;
    IdentityTable seen_;
    RefBuffer<48> kept_;     // objects that are known by address and that the leaves don't own
    int num_callbacks_ = 0;  // how many open frames a flatten function opened
    // The open objects without identity, by their nodes: they aren't in the identity table, but can contain themselves.
    std::unordered_map<PyObject *, uint32_t> open_untracked_;
};

}  // namespace pydag
