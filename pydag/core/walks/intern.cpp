// SPDX-License-Identifier: Apache-2.0
#include "walks/intern.h"

#include "base/sequence_table.h"
#include "nodes/build.h"
#include "structure/compare.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/keys.h"
#include "types/values.h"
#include "walks/post_order.h"

namespace pydag {
namespace {

// Gives each reference of a node a pair of numbers: equal references get equal pairs.
class RefNumbers {
public:
    struct Pair {
        uint32_t first, second;
    };
    Pair of(PyObject *ref) {
        const uint32_t known = known_.find_or_add(ref, static_cast<uint32_t>(pairs_.size()));
        if (known != IdentityTable::kNew) return pairs_[known];
        pairs_.push_back({});  // before `number`, which may run Python code; that code can't reach this table
        const size_t index = pairs_.size() - 1;
        return pairs_[index] = number(ref);
    }

private:
    // For keys the pair stands for the order in which they were inserted and the order of traversal.
    Pair number(PyObject *ref) {
        if (!KeysBox::check(ref)) return {values_.number_of(ref), 0};
        const Keys &keys = KeysBox::of(ref);
        const uint32_t inserted = values_.number_of(keys.tuple());
        return {inserted, keys.in_order ? inserted : values_.number_of(keys.order())};
    }

    ValueTable values_;
    IdentityTable known_;  // the structure owns its references
    std::vector<Pair> pairs_;
};

class Intern {
public:
    Intern(const Structure &structure, const NodeObjects &objects, Namespace &space)
        : structure_(structure), objects_(objects), space_(space), values_(&space) {
        anchors_.resize(structure.num_shared);
    }

    nb::object run() {
        try {
            visit_children_first(structure_, *this);
        } catch (...) {
            rethrow_at(structure_, position_, "interning");
        }
        return nb::borrow(object_of(parts_.back()));
    }

    void visit(const VisitedNode &at) {
        position_ = at.position;
        const Node node = structure_.nodes[at.position];
        const Part part = node.is_leaf() ? leaf(at.position) : merged(node, at);
        parts_.push(part);
        if (node.is_anchor) anchors_[at.number] = part;
    }
    void visit_alias(uint32_t number) { parts_.push(anchors_[number]); }

private:
    // A child: the number that it shares with all equal parts, and its position.
    struct Part {
        uint32_t number, position;
        bool is_value;  // a leaf that is never replaced, even by an equal one
    };

    // The object that replaces a part.
    PyObject *object_of(const Part &part) const {
        return part.is_value ? objects_[part.position] : unique_[part.number];
    }

    // The first number of a key.
    enum : uint32_t { kValue, kObject, kFirstType };

    Part leaf(uint32_t position) {
        PyObject *const object = objects_[position];
        const bool is_value = space_.find(Py_TYPE(object)).identity == kNoIdentity;
        const uint32_t key[] = {is_value ? kValue : kObject,
                                is_value ? values_.number_of(object) : number_of_address(object)};
        const auto [number, is_new] = keys_.find_or_add(key, 2);
        if (is_new) unique_.push_borrowed(object);
        return {number, position, is_value};
    }

    Part merged(Node node, const VisitedNode &at) {
        PyObject *const object = objects_[at.position];
        const nb::object type = nb::borrow(reinterpret_cast<PyObject *>(Py_TYPE(object)));
        key_.resize_down(0);
        key_.push(kFirstType + number_of_address(type.ptr()));
        const NodeRefs refs{node.kind, at.refs};
        for (uint32_t i = 0; i < refs.size(); ++i) {
            if (!is_compared(refs.role(i))) continue;
            const RefNumbers::Pair numbers = refs_.of(refs.ref(i));
            key_.push(numbers.first), key_.push(numbers.second);
        }
        const size_t base = parts_.size() - node.count;
        bool has_changed = false;
        for (size_t i = base; i < parts_.size(); ++i) {
            key_.push(parts_[i].number);
            has_changed |= object_of(parts_[i]) != objects_[parts_[i].position];
        }
        const auto [number, is_new] = keys_.find_or_add(key_.data(), key_.size());
        if (is_new) unique_.push_new(has_changed ? rebuilt(node, at, base) : nb::borrow(object));
        parts_.resize_down(base);
        return {number, at.position, false};
    }

    nb::object rebuilt(Node node, const VisitedNode &at, size_t base) {
        Stack children;
        for (size_t i = base; i < parts_.size(); ++i) children.push_borrowed(object_of(parts_[i]));
        return build_node(node.kind, at.refs, children, 0, once_);
    }

    // Types and leaves, both of which stay alive.
    uint32_t number_of_address(PyObject *object) {
        const uint32_t known = addresses_.find_or_add(object, num_addresses_);
        if (known != IdentityTable::kNew) return known;
        kept_.push_borrowed(object);
        return num_addresses_++;
    }

    const Structure &structure_;
    const NodeObjects &objects_;
    Namespace &space_;
    ValueTable values_;
    RefNumbers refs_;
    IdentityTable addresses_;
    RefBuffer<16> kept_;
    uint32_t num_addresses_ = 0;
    SequenceTable keys_;
    RefBuffer<48> unique_;  // by number
    Buffer<Part, 96> parts_;
    Buffer<uint32_t, 32> key_;
    MadeOnce once_;
    std::vector<Part> anchors_;  // by number
    uint32_t position_ = 0;
};

}  // namespace

nb::object intern(nb::handle tree, const FlattenOptions &options) {
    NodeObjects objects;
    Flattened parts(tree, options, &objects);
    parts.remember();
    const Structure structure = parts.structure();
    return Intern(structure, objects, *options.space).run();
}

}  // namespace pydag
