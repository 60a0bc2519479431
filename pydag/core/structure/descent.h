// SPDX-License-Identifier: Apache-2.0
//
// A walk down a structure that goes through aliases, so it visits a shared object at each of its slots, and knows the
// path by which it came there.
#pragma once

#include "base/interrupt.h"
#include "structure/indexed_structure.h"
#include "structure/paths.h"

#include <algorithm>

namespace pydag {

class Descent {
public:
    struct Visit {
        uint32_t slot;
        uint32_t partner;  // what the slot is compared with
        uint32_t parent;   // in `trail_`: the visit below which this one lies
    };
    explicit Descent(const IndexedStructure &structure) : structure_(structure) {}

    // Calls `visit(Visit)` for a slot, and for those that it adds by `below`.
    template <class Function>
    void run(uint32_t slot, uint32_t partner, Function visit) {
        trail_.clear();
        pending_.push({slot, partner, kNoParent});
        while (!pending_.empty()) {
            interruptible_step();
            visit(pending_.pop());
        }
    }

    // Returns a function `add(slot, partner)`, to be called `count` times at once. These slots are visited next, in
    // this order.
    auto below(const Visit &visit, uint32_t count) {
        const auto parent = static_cast<uint32_t>(trail_.size());
        trail_.push_back(visit);
        return [parent, next = pending_.extend(count) + count](uint32_t slot, uint32_t partner) mutable {
            *--next = {slot, partner, parent};
        };
    }

    // The path by which the walk came to a slot.
    Steps path_to(const Visit &visit) const {
        std::vector<uint32_t> slots = {visit.slot};
        for (uint32_t at = visit.parent; at != kNoParent; at = trail_[at].parent) slots.push_back(trail_[at].slot);
        std::reverse(slots.begin(), slots.end());
        Steps path = steps_to(structure_.structure, slots.front());
        for (size_t i = 1; i < slots.size(); ++i) {
            const uint32_t position = structure_.resolve(slots[i - 1]);
            uint32_t child = 0, found = 0;
            structure_.for_each_slot(position, [&](uint32_t slot) {
                if (slot == slots[i]) found = child;
                ++child;
            });
            path.push_back(step_of(structure_.node(position).kind, structure_.refs(position), found));
        }
        return path;
    }
    // Turns the exception in flight into a Python error that names this path (base/error.h).
    [[noreturn]] void rethrow_at(const Visit &visit, const char *doing) const {
        pydag::rethrow_at([&] { return path_text(path_to(visit)); }, doing);
    }

private:
    static constexpr uint32_t kNoParent = UINT32_MAX;

    const IndexedStructure &structure_;
    Buffer<Visit, 48> pending_;
    std::vector<Visit> trail_;  // the visits below which slots were added
};

}  // namespace pydag
