// SPDX-License-Identifier: Apache-2.0
#include "walks/flatten.h"

#include "base/interrupt.h"
#include "base/object_set.h"
#include "nodes/open.h"
#include "nodes/open_options.h"
#include "structure/cursor.h"
#include "walks/leaf_class.h"
#include "walks/node_answers.h"

#include <algorithm>
#include <optional>

namespace pydag {
namespace {

// What the walk is for.
enum class Use {
    kFlatten,
    kFlattenWithObjects,
    kLook,   // only the objects are asked for
    kAsk,    // to flatten, for a structure with nodes that must be asked
    kMatch,  // any object is a leaf where the structure has one
};

template <Use use>
class KnownFlatten {
    static constexpr bool asks = use == Use::kAsk;
    static constexpr bool flattens = use != Use::kMatch;

public:
    // `options`: null for a match. `space`: null, unless classes are looked up in it.
    KnownFlatten(const Structure &structure, const FlattenOptions *options, Leaves &leaves,
                 NodeObjects *objects = nullptr, Namespace *space = nullptr, BorrowedObjects *borrowed = nullptr,
                 NodeAnswers *answers = nullptr)
        : structure_(structure),
          options_(options),
          objects_(objects),
          space_(space),
          borrowed_(borrowed),
          answers_(answers),
          leaves_(leaves) {
        if (use != Use::kLook) leaves.reserve(structure.num_leaves);
    }

    bool run(PyObject *tree) {
        if (walk(tree)) return true;
        leaves_.drop_to(0);
        if (objects_) objects_->drop_to(0);
        return false;
    }

private:
    bool walk(PyObject *tree) {
        pause_.emplace();  // a collection could run finalizers
        OpenOptions open_options{nullptr};
        if (flattens) options_->prepare(open_options);
        const Node *node = structure_.nodes, *const end = node + structure_.num_nodes;
        PyObject *const *refs = structure_.refs;
        // Room for more values than all mappings together have.
        PyObject **values = values_.extend(structure_.num_nodes);
        BorrowedFrame level = {&tree, &tree + 1, 0};
        // The walk borrows all objects, so no handler of a signal may run.
        while (node < end) {
            const Node *const stop = node + std::min<size_t>(LookingSteps::kBetween, static_cast<size_t>(end - node));
            while (node < stop) {
                while (level.next == level.end) level = levels_.pop();
                PyObject *const object = *level.next++;
                if (!object) [[unlikely]]
                    return false;
                if (use == Use::kFlattenWithObjects || (asks && objects_)) objects_->push_borrowed(object);
                if constexpr (use == Use::kLook) borrowed_->push_reserved(object);
                const Node expected = *node++;
                bool is_opened_once = level.owns_slots();
                if (expected.is_leaf()) {
                    if (!meet_leaf(object, expected, level)) return false;
                    if constexpr (use != Use::kLook) leaves_.push_reserved(incref(object));
                    continue;
                }
                if (expected.is_alias()) {
                    if (object != anchors_[expected.count] || is_value(object, level)) return false;
                    continue;
                }
                if (use == Use::kLook && is_callback(expected.kind)) return false;
                // A restored structure may share an object whose class has no identity as it is registered now.
                Py_ssize_t num_own = 0;
                if (expected.is_anchor || has_identity(expected.kind, refs)) {
                    if (!meet<false>(object, expected, level)) return false;
                    if constexpr (asks) answers_->keep(object), num_own = 1;
                    is_opened_once = true;
                }
                if (!flattens && space_ && !is_still_class_of(expected.kind, refs, object)) return false;
                const bool is_asked = asks && must_ask(expected, refs);
                PyObject *const *const children =
                    is_asked
                        ? ask(object, expected, refs, open_options, level)
                        : read_known_node(expected, refs, object, flattens ? &open_options : nullptr, values, held_);
                if (!children) return false;
                if (is_asked) open_options.leaves_are_values = are_leaves_values(expected.kind, refs, false);
                refs += num_refs(expected);
                if (expected.count == 0) continue;
                // After the last child of a node the walk doesn't come back to the node.
                if (level.next != level.end) levels_.push(level);
                level.next = children;
                level.end = children + expected.count;
                if (children == values) values += expected.count;
                if constexpr (flattens) {
                    const bool leaves_are_values = is_callback(expected.kind)
                                                       ? open_options.leaves_are_values
                                                       : level.leaves_are_values() && !may_have_identity(expected.kind);
                    const bool owns_slots =
                        !is_asked && is_opened_once && owns_its_slots(expected.kind, object, open_options, num_own);
                    level.state = BorrowedFrame::state_of(owns_slots, leaves_are_values) |
                                  (is_asked ? BorrowedFrame::kIsOwned : 0);
                }
            }
            if (node < end && is_signal_waiting()) return false;
        }
        return true;
    }

    PyObject *const *ask(PyObject *object, Node expected, PyObject *const *refs, OpenOptions &open_options,
                         BorrowedFrame &level) {
        pause_.reset();
        PyObject *const *const children =
            answers_->ask(structure_, object, expected, refs, open_options, level, levels_);
        pause_.emplace();
        leaf_class_.forget();  // Python code may have registered it
        return children;
    }

    // Whether the class of the object is still registered as it was when the structure was made.
    bool is_still_class_of(Kind kind, PyObject *const *refs, PyObject *object) {
        if (!has_many_classes(kind)) return true;
        const TypeInfo *const info = space_->find_known(Py_TYPE(object));
        if (!info || info->kind != kind) return false;
        return !is_registered(kind) || &RegistrationBox::of(info->registration) == &node_registration(refs);
    }

    // Whether the object is a leaf as expected. Notes an anchor, and that the object was met.
    [[gnu::always_inline]] bool meet_leaf(PyObject *object, Node expected, const BorrowedFrame &level) {
        if constexpr (flattens) {
            if (!leaf_class_.is_of_leaves(Py_TYPE(object), *options_)) [[unlikely]]
                return false;
            return leaf_class_.is_tracked() ? meet<true>(object, expected, level) : !expected.is_anchor;
        } else {
            if (expected.is_anchor) anchors_.push(object);
            return true;
        }
    }

    // Whether an object that was met before is a leaf that has no identity here.
    bool is_value(PyObject *object, const BorrowedFrame &level) {
        return level.leaves_are_values() && leaf_class_.is_of_leaves(Py_TYPE(object), *options_) &&
               !leaf_class_.is_tracked_below_all();
    }

    // Whether the object is new, as expected, and may be an anchor if the structure has one here. Notes that it was
    // met.
    template <bool is_leaf>
    [[gnu::always_inline]] bool meet(PyObject *object, Node expected, const BorrowedFrame &level) {
        if (flattens && level.is_only_way_to(object)) [[likely]] {
            if constexpr (asks) passed_.push(object);
            return !expected.is_anchor;
        }
        if constexpr (is_leaf)
            if (level.leaves_are_values() && !leaf_class_.is_tracked_below_all()) [[unlikely]]
                return !expected.is_anchor;
        return note_met(object, expected);
    }

    bool note_met(PyObject *object, Node expected) {
        if (expected.is_anchor) anchors_.push(object);
        if constexpr (asks)
            // A node's answer may have any object, also one that was passed. The walk holds all of them, so there is
            // more than one reference when it comes again.
            while (!answers_->empty() && !passed_.empty()) seen_.add(passed_.pop());
        return !flattens || seen_.add(object);
    }

    const Structure &structure_;
    const FlattenOptions *const options_;
    NodeObjects *const objects_;
    Namespace *const space_;
    BorrowedObjects *const borrowed_;
    NodeAnswers *const answers_;
    [[no_unique_address]] Held held_;
    Leaves &leaves_;
    LeafClass leaf_class_;
    Buffer<BorrowedFrame, 24> levels_;
    Buffer<PyObject *, 192> values_;
    Buffer<PyObject *, 16> anchors_;  // by number
    ObjectSet seen_;
    Buffer<PyObject *, 96> passed_;  // nothing but their slots held them
    std::optional<GcPause> pause_;
};

}  // namespace

bool flatten_known(const Structure &structure, PyObject *tree, const FlattenOptions &options, Leaves &leaves,
                   NodeObjects *objects) {
    if (structure.num_nodes == 0 || options.asks()) return false;
    if (!objects) return KnownFlatten<Use::kFlatten>(structure, &options, leaves).run(tree);
    return KnownFlatten<Use::kFlattenWithObjects>(structure, &options, leaves, objects).run(tree);
}

bool flatten_asking(const Structure &structure, PyObject *tree, const FlattenOptions &options, Leaves &leaves,
                    NodeObjects *objects, NodeAnswers &answers) {
    if (structure.num_nodes == 0 || options.asks() || !options.opens_callbacks) return false;
    return KnownFlatten<Use::kAsk>(structure, &options, leaves, objects, nullptr, nullptr, &answers).run(tree);
}

bool look_at_known(const Structure &structure, PyObject *tree, const FlattenOptions &options,
                   BorrowedObjects &objects) {
    if (structure.num_nodes == 0 || options.asks()) return false;
    objects.reserve(structure.num_nodes);
    Leaves none;
    return KnownFlatten<Use::kLook>(structure, &options, none, nullptr, nullptr, &objects).run(tree);
}

bool match_known(const Structure &structure, PyObject *tree, Leaves &leaves, Namespace *space) {
    return KnownFlatten<Use::kMatch>(structure, nullptr, leaves, nullptr, space).run(tree);
}

}  // namespace pydag
