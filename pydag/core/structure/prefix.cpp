// SPDX-License-Identifier: Apache-2.0
#include "structure/prefix.h"

#include "base/equality.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "structure/compare.h"
#include "structure/cursor.h"
#include "structure/indexed_structure.h"
#include "structure/node_difference.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/keys.h"

#include <algorithm>

namespace pydag {
namespace {

std::string text(nb::object str) { return text_of(str); }

// A builtin class by its bare name; a class of a kind that has many as its `repr` shows it.
std::string class_text(Kind kind, PyObject *const *refs) {
    const nb::object type = type_of(kind, refs);
    if (!has_many_classes(kind)) return text(checked(PyObject_GetAttrString(type.ptr(), "__name__")));
    return text(short_repr(type));
}

bool has_same_class(Node a, PyObject *const *refs_a, PyObject *const *refs_b) {
    if (!has_many_classes(a.kind)) return true;
    if (!is_registered(a.kind)) return TupleClassRefs{refs_a}.type() == TupleClassRefs{refs_b}.type();
    return same_registration(CustomRefs{refs_a}.registration_box(), CustomRefs{refs_b}.registration_box());
}

// Aux_data, or the values of meta fields; null for kinds that have neither.
PyObject *data_of(Kind kind, PyObject *const *refs) {
    return NodeRefs{kind, refs}.find(is_callback(kind) ? Role::kAuxData : Role::kMeta);
}

const char *noun_of(Kind kind) {
    if (is_registered(kind)) return "Custom type";
    if (!has_many_classes(kind)) return traits(kind).name;
    return traits(kind).entries == Entries::kTupleFields ? "namedtuple" : "PyStructSequence";
}

}  // namespace

Fit fit_node(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b, std::vector<uint32_t> &order) {
    order.clear();
    const bool are_mappings = traits(a.kind).is_mapping && traits(b.kind).is_mapping;
    if (a.kind != b.kind && !are_mappings) return Fit::kOtherKind;
    const bool has_other_class = !are_mappings && !has_same_class(a, refs_a, refs_b);
    if (has_other_class && is_registered(a.kind)) return Fit::kOtherClass;
    if (!has_keys(a.kind) && a.count != b.count) return Fit::kOtherCount;
    if (has_other_class) return Fit::kOtherClass;
    if (has_keys(a.kind) && !match_keys(keys_box_of(a.kind, refs_a), keys_box_of(b.kind, refs_b), order))
        return Fit::kOtherKeys;
    if (!is_registered(a.kind)) return Fit::kFits;
    return are_equal_objects(data_of(a.kind, refs_a), data_of(b.kind, refs_b)) ? Fit::kFits : Fit::kOtherData;
}

std::string misfit(Fit fit, Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b) {
    if (fit == Fit::kOtherKind)
        return "PyDagSpecs have incompatible node types; expected type: " + class_text(a.kind, refs_a) +
               ", got: " + class_text(b.kind, refs_b);
    if (fit == Fit::kOtherCount)
        return std::string(noun_of(a.kind)) + " arity mismatch; expected: " + std::to_string(a.count) +
               ", got: " + std::to_string(b.count);
    if (fit == Fit::kOtherClass)
        return std::string(is_registered(a.kind) ? "Custom node" : noun_of(a.kind)) +
               " type mismatch; expected type: " + class_text(a.kind, refs_a) +
               ", got type: " + class_text(b.kind, refs_b) +
               class_difference(type_of(a.kind, refs_a), type_of(b.kind, refs_b));
    if (fit == Fit::kOtherKeys)
        return std::string(traits(a.kind).is_mapping ? "dictionary" : "fields") + " key mismatch; " +
               key_mismatch(node_keys(a.kind, refs_a), node_keys(b.kind, refs_b));
    if (!is_callback(a.kind)) {
        const Words words = meta_difference(a.kind, refs_a, refs_b);
        return "Mismatch of meta fields; expected: " + words.first + ", got: " + words.second;
    }
    return "Mismatch custom node data; expected: " + text(short_repr(data_of(a.kind, refs_a))) +
           ", got: " + text(short_repr(data_of(b.kind, refs_b)));
}

namespace {

enum class Found { kPrefix, kNoPrefix, kOtherOrder };

// The test if `b` shares nothing: goes through both structures once, in step. `kOtherOrder`: dicts have their keys in
// different orders, so the slots of `b` have to be found by an index.
Found test_in_step(const Structure &a, const Structure &b, bool strict) {
    std::vector<uint32_t> order;
    Cursor other(b);
    for (Cursor at(a); at.is_at_node(); at.step()) {
        interruptible_step();
        if (at.node().is_alias()) return Found::kNoPrefix;
        if (at.node().is_leaf()) {
            strict = strict && other.node().is_leaf();  // a leaf that is replaced by a node is enough
            for (uint32_t num_slots = 1; num_slots > 0; --num_slots, other.step())
                num_slots += num_children(other.node());
            continue;
        }
        if (other.node().is_leaf()) return Found::kNoPrefix;
        if (fit_node(at.node(), at.refs(), other.node(), other.refs(), order) != Fit::kFits) return Found::kNoPrefix;
        if (!order.empty()) return Found::kOtherOrder;
        other.step();
    }
    return strict ? Found::kNoPrefix : Found::kPrefix;
}

class PrefixTest {
public:
    PrefixTest(const Structure &a, const Structure &b) : a_(a), b_(b), is_taken_(b.num_nodes) {}

    bool run(bool strict) {
        slots_.push(0);
        for (Cursor at(a_); at.is_at_node(); at.step()) {
            interruptible_step();
            if (!fits(at, b_.resolve(slots_.pop()))) return false;
        }
        return !strict || is_strict_;
    }

private:
    // Whether the node of `a` fits the object of `b` at this position.
    bool fits(const Cursor &at, uint32_t position) {
        const Node node = at.node(), other = b_.node(position);
        if (node.is_alias()) return anchors_[node.count] == position;
        if (node.is_anchor) anchors_.push(position);
        // Two slots hold two objects in `a` and one object in `b`.
        if (other.is_anchor && is_taken_[position]) is_strict_ = true;
        is_taken_[position] = true;
        if (node.is_leaf()) {
            is_strict_ = is_strict_ || !other.is_leaf();
            return true;
        }
        if (other.is_leaf()) return false;
        if (fit_node(node, at.refs(), other, b_.refs(position), order_) != Fit::kFits) return false;
        push_slots(position);
        return true;
    }

    // Pushes the slots of a node of `b` in the order of the slots of `a`.
    void push_slots(uint32_t position) {
        if (order_.empty()) return b_.push_slots(position, slots_, [](uint32_t slot) { return slot; });
        std::vector<uint32_t> slots;
        b_.for_each_slot(position, [&](uint32_t slot) { slots.push_back(slot); });
        for (auto next = order_.rbegin(); next != order_.rend(); ++next) slots_.push(slots[*next]);
    }

    const Structure &a_;
    const IndexedStructure b_;
    Buffer<uint32_t, 48> slots_;    // of `b`, still to be visited
    Buffer<uint32_t, 16> anchors_;  // the object of `b` that goes with each anchor of `a`, by its number
    std::vector<bool> is_taken_;    // whether an object of `b` goes with an object of `a` already
    std::vector<uint32_t> order_;
    bool is_strict_ = false;
};

}  // namespace

bool is_prefix(const Structure &a, const Structure &b, bool strict) {
    if (a.none_is_leaf != b.none_is_leaf || !are_compatible(a.namespace_, b.namespace_)) return false;
    if (b.num_shared == 0) {
        const Found found = test_in_step(a, b, strict);
        if (found != Found::kOtherOrder) return found == Found::kPrefix;
    }
    return PrefixTest(a, b).run(strict);
}

}  // namespace pydag
