// SPDX-License-Identifier: Apache-2.0
//
// What `tie` and `untie` have in common: slots that are found by their paths, and a tree that is written with other
// nodes in some of them.
#pragma once

#include "rewrites/redirect.h"
#include "rewrites/rewrites.h"

#include <unordered_map>

namespace pydag {

struct Redirect {
    uint32_t target;  // the node that the slot holds from now on
    bool is_copy;     // the slot holds a copy of the node, with all that is below it
};
using Redirects = std::unordered_map<uint32_t, Redirect>;

class Tying : public Redirection<Tying> {
public:
    Tying(const IndexedStructure &tree, const Leaves &leaves, const FlattenOptions &options, const Redirects &redirects,
          nb::handle copy_leaf = nb::handle(), uint32_t most_copies = UINT32_MAX)
        : Redirection(tree, leaves, options), redirects_(redirects), copy_leaf_(copy_leaf), most_copies_(most_copies) {}

    Place target_of(Place slot) {
        const auto found = redirects_.find(slot.position);
        if (found == redirects_.end()) return {tree_.resolve(slot.position), slot.copy};
        if (!found->second.is_copy) return {found->second.target, slot.copy};
        // What is untied in an object is untied in each copy of it, so paths through one another multiply.
        if (num_copies_ == most_copies_)
            fail(PyExc_ValueError,
                 "the paths lead through each other, and untying them takes more than %u copies\n"
                 "  Untie a few of them in one call, and others in the next.",
                 most_copies_);
        return {found->second.target, ++num_copies_};
    }
    uint32_t write(Place node) {
        write_unchanged(node.position);
        if (node.copy > 0 && tree_.node(node.position).is_leaf()) {
            const size_t last = result_leaves_.size() - 1;
            result_leaves_.replace(last, call(copy_leaf_, nb::handle(result_leaves_[last])));
        }
        return node.position;
    }
    [[noreturn]] void fail_cycle(uint32_t slot, uint32_t node) const {
        fail(cycle_error,
             "an object would contain itself: the object at %s would stand at %s\n"
             "  A structure with a cycle is not a DAG.",
             path_to(node).c_str(), path_to(slot).c_str());
    }

private:
    const Redirects &redirects_;
    nb::handle copy_leaf_;
    uint32_t most_copies_, num_copies_ = 0;
};

// The slots to which paths lead. ValueError for a path that leads nowhere. `paths`: a tuple of tuples of entries.
std::vector<uint32_t> find_slots(const IndexedStructure &tree, nb::handle paths);
inline std::string path_to(const IndexedStructure &tree, uint32_t slot) { return path_of(tree.structure, slot); }

}  // namespace pydag
