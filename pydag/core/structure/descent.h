// SPDX-License-Identifier: Apache-2.0
//
// A walk down a structure that goes through its aliases. It comes to a shared object at each of its slots, and
// it knows the path by which it came there.
#pragma once

#include "base/interrupt.h"
#include "structure/indexed_structure.h"
#include "structure/paths.h"

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

    // A function `add(slot, partner)`, to be called `count` times before anything else is done here. The slots
    // that it adds are visited next, in this order.
    auto below(const Visit &visit, uint32_t count) {
        const auto parent = static_cast<uint32_t>(trail_.size());
        trail_.push_back(visit);
        return [parent, next = pending_.extend(count) + count](uint32_t slot, uint32_t partner) mutable {
            *--next = {slot, partner, parent};
        };
    }

    // The path by which the walk came to a slot.
    Steps path_to(const Visit &visit) const;
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
