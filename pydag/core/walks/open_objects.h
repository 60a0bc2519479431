// SPDX-License-Identifier: Apache-2.0
//
// The objects without identity that a walk is inside of, the outermost first. They aren't in the identity
// table, but they can contain themselves, too.
//
// The caller owns them while they are here.
#pragma once

#include "base/identity_table.h"

#include <unordered_map>
#include <vector>

namespace pydag {

class OpenObjects {
public:
    // Steps into `object`, which stands at `node`. Returns IdentityTable::kNew, or, where the walk
    // is inside of it already, the node at which it was entered.
    uint32_t enter(PyObject *object, uint32_t node) {
        if (way_.size() == way_.capacity()) way_.reserve(2 * way_.size() + 8);  // before `nodes_` knows it
        const auto [known, is_new] = nodes_.emplace(object, node);
        if (!is_new) return known->second;
        way_.push_back(object);
        return IdentityTable::kNew;
    }
    // Steps out of the innermost one.
    void leave() {
        nodes_.erase(way_.back());
        way_.pop_back();
    }

private:
    std::vector<PyObject *> way_;
    std::unordered_map<PyObject *, uint32_t> nodes_;
};

}  // namespace pydag
