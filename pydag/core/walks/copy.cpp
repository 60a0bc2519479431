// SPDX-License-Identifier: Apache-2.0
#include "walks/copy.h"

#include "base/gc_pause.h"
#include "base/interrupt.h"
#include "walks/flatten.h"
#include "walks/unflatten.h"

namespace pydag {
namespace {

// A container whose children are being copied. These frames are no `Nesting` (cursor.h): with one, copying took 3.7 %
// more instructions.
struct Frame {
    PyObject *const *refs;
    uint32_t node, number;  // its position; of an anchor
    uint32_t pending;       // how many children the node around it waits for, this one included
    uint32_t first_changed;
};

// Copies a tree that was just seen to have a structure, object by object: what a dict holds need not be
// put into a new one where it can be copied as a whole. No Python code runs, so nothing can have changed.
class KnownCopy {
public:
    // `objects`: at each node. At an alias it is the anchor's.
    KnownCopy(const Structure &structure, PyObject *const *objects) : structure_(structure), objects_(objects) {
        values_.reserve(structure.num_nodes);
        memo_.reserve(structure.num_shared);
    }

    // Null where the walk had to give up.
    nb::object run() {
        const BuildPause pause;
        PyObject *const *refs = structure_.refs;
        uint32_t pending = 1;  // how many children the innermost open node waits for
        LookingSteps steps;
        for (uint32_t position = 0; position < structure_.num_nodes; ++position) {
            if (steps.must_give_up()) return nb::object();
            const Node node = structure_.nodes[position];
            if (node.is_leaf() || node.is_none()) {
                values_.push_reserved(incref(objects_[position]));
                if (node.is_anchor) memo_.push_reserved(objects_[position]);
            } else if (node.is_alias()) {
                push_changed(nb::borrow(memo_[node.count]), pending);
            } else if (is_callback(node.kind)) {
                return nb::object();  // building one may run Python code
            } else {
                const Frame frame = {refs, position, static_cast<uint32_t>(memo_.size()), pending,
                                     static_cast<uint32_t>(changed_.size())};
                if (node.is_anchor) memo_.push_reserved(nullptr);  // until it is built
                refs += num_refs(node);
                if (node.count > 0) {
                    frames_.push(frame);
                    pending = node.count;
                    continue;
                }
                build(frame);
            }
            while (--pending == 0 && !frames_.empty()) {
                const Frame frame = frames_.pop();
                pending = frame.pending;
                build(frame);
            }
        }
        return values_.pop_owned();
    }

private:
    // Builds a container whose children are the last values.
    void build(const Frame &frame) {
        const Node node = structure_.nodes[frame.node];
        const std::span<const uint32_t> changed(changed_.data() + frame.first_changed,
                                                changed_.data() + changed_.size());
        nb::object made = copy_node(node, frame.refs, objects_[frame.node], changed, values_, once_);
        changed_.resize_down(frame.first_changed);
        if (node.is_anchor) memo_[frame.number] = made.ptr();
        push_changed(std::move(made), frame.pending);
    }

    // The next child of the innermost open node, which counts backwards.
    void push_changed(nb::object child, uint32_t pending) {
        values_.push_reserved(child.release().ptr());
        if (!frames_.empty()) changed_.push(structure_.nodes[frames_.back().node].count - pending);
    }

    const Structure &structure_;
    PyObject *const *const objects_;
    Stack values_;
    Buffer<uint32_t, 64> changed_;  // which children of the open nodes are not those of the tree, by their indices
    Buffer<Frame, 24> frames_;
    MadeOnce once_;
    Buffer<PyObject *, 16> memo_;  // the copies of the anchors, by number: values own them, or what was made of those
};

// Null where the tree isn't known, where a signal waits, and where something is wrong.
nb::object copy_known(nb::handle tree, const FlattenOptions &options) {
    const CachedStructure known(tree.ptr(), options.setting());
    BorrowedObjects objects;
    if (known.must_ask() || !look_at_known(known.structure(), tree.ptr(), options, objects)) return nb::object();
    if (known.structure().nodes[0].is_leaf()) return nb::object();  // may be one that is no tree
    try {
        return KnownCopy(known.structure(), objects.data()).run();
    } catch (nb::python_error &) {  // the general way meets the error again, and says where
        return nb::object();
    }
}

}  // namespace

nb::object copy(nb::handle tree, const FlattenOptions &options) {
    if (nb::object made = copy_known(tree, options); made.is_valid()) return made;
    Flattened parts(tree, options);
    parts.remember();
    return unflatten(parts.structure(), parts.leaves().data());
}

}  // namespace pydag
