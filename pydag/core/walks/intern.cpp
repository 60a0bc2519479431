// SPDX-License-Identifier: Apache-2.0
#include "base/sequence_table.h"
#include "nodes/build.h"
#include "structure/compare.h"
#include "structure/node_refs.h"
#include "types/keys.h"
#include "types/values.h"
#include "walks/fold_structure.h"
#include "walks/walks.h"

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
        pairs_.push_back({});  // before `number` runs Python code, which can't reach this table
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
        : structure_(structure),
          objects_(objects),
          space_(space),
          values_(&space),
          numbers_(structure.num_nodes),
          anchor_numbers_(structure.num_shared) {}

    nb::object run() {
        return fold_structure(structure_, "interning", [this](const VisitedNode &at, Stack &results) {
            return at.node.is_leaf() ? leaf(at) : merged(at, results);
        });
    }

private:
    // The first number of a key.
    enum : uint32_t { kValue, kObject, kFirstType };

    // A leaf that is a value is never replaced, even by an equal one.
    nb::object leaf(const VisitedNode &at) {
        const nb::handle object = objects_[at.position];
        const bool is_value = space_.find(Py_TYPE(object.ptr())).identity == kNoIdentity;
        const uint32_t key[] = {is_value ? kValue : kObject,
                                is_value ? values_.number_of(object) : number_of_address(object.ptr())};
        if (is_new(at, key, 2)) unique_.push_borrowed(object.ptr());
        return nb::borrow(is_value ? object : unique_[numbers_[at.position]]);
    }

    nb::object merged(const VisitedNode &at, Stack &results) {
        PyObject *const object = objects_[at.position];
        key_.resize_down(0);
        key_.push(kFirstType + number_of_address(as_object(Py_TYPE(object))));
        const NodeRefs refs{at.node.kind, at.refs};
        for (uint32_t i = 0; i < refs.size(); ++i) {
            if (!is_compared(refs.role(i))) continue;
            const RefNumbers::Pair numbers = refs_.of(refs.ref(i));
            key_.push(numbers.first), key_.push(numbers.second);
        }
        const size_t base = results.size() - at.node.count;
        for (uint32_t i = 0; i < at.node.count; ++i) {
            const Node child = structure_.nodes[at.children[i]];
            key_.push(child.is_alias() ? anchor_numbers_[child.count] : numbers_[at.children[i]]);
        }
        if (is_new(at, key_.data(), key_.size())) {
            const bool is_kept = at.keeps_children(objects_.data(), results.data() + base);
            unique_.push_new(is_kept ? nb::borrow(object) : build_node(at.node.kind, at.refs, results, base, once_));
        }
        results.drop_to(base);
        return nb::borrow(unique_[numbers_[at.position]]);
    }

    // Whether no other node has this key. Notes the number that the node shares with all equal ones.
    bool is_new(const VisitedNode &at, const uint32_t *key, size_t count) {
        const auto [number, is_new] = keys_.find_or_add(key, count);
        numbers_[at.position] = number;
        if (at.node.is_anchor) anchor_numbers_[at.number] = number;
        return is_new;
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
    Buffer<uint32_t, 32> key_;
    MadeOnce once_;
    std::vector<uint32_t> numbers_, anchor_numbers_;  // of the nodes by position; of the anchors by their number
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
