// SPDX-License-Identifier: Apache-2.0
//
// Writes a structure anew, depth first from the root, with some of its slots holding other nodes or
// copies of them.
#pragma once

#include "rewrites/find_slot.h"
#include "structure/cursor.h"
#include "walks/flatten.h"

#include <map>
#include <unordered_map>

namespace pydag {

struct Redirect {
    uint32_t target;  // the node that the slot holds from now on
    bool is_copy;     // the slot holds a copy of the node, with all that is below it
};

class RedirectedWalk {
public:
    RedirectedWalk(const IndexedStructure &tree, const Leaves &leaves, const FlattenOptions &options,
                   const std::unordered_map<uint32_t, Redirect> &redirects, nb::handle copy_leaf,
                   StructureBuilder &result, Leaves &result_leaves)
        : tree_(tree),
          leaves_(leaves),
          options_(options),
          redirects_(redirects),
          copy_leaf_(copy_leaf),
          result_(result),
          result_leaves_(result_leaves) {}

    void run();

private:
    // A node, and the number of the copy in which it is written; number 0 is the tree itself.
    using Written = std::pair<uint32_t, uint32_t>;
    struct Task {
        uint32_t slot;  // of a node that is being written: its position
        uint32_t copy;
    };
    enum class State : uint8_t { kOpen, kDone };
    struct Record {
        State state;
        uint32_t position;  // in the result
    };

    void visit(const Task &task);
    void write(uint32_t node, uint32_t copy);
    bool has_identity(uint32_t node) const;
    [[noreturn]] void fail_cycle(uint32_t slot, uint32_t node) const;

    const IndexedStructure &tree_;
    const Leaves &leaves_;
    const FlattenOptions &options_;
    const std::unordered_map<uint32_t, Redirect> &redirects_;
    nb::handle copy_leaf_;
    StructureBuilder &result_;
    Leaves &result_leaves_;
    Buffer<Task, 48> pending_;  // the slots to come
    Nesting<Task> around_;
    std::map<Written, Record> written_;
    uint32_t num_copies_ = 0;
    bool has_aliases_ = false;
};

}  // namespace pydag
