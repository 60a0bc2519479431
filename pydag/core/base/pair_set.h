// SPDX-License-Identifier: Apache-2.0
//
// Pairs that a walk over two trees in step has met. It goes below each pair once, so its cost is linear in pairs of
// objects and not of paths.
//
// A pair consists of positions in a structure, or of objects, which count by their addresses. The set owns its objects:
// otherwise an address could be used again during the walk. Runs no Python code.
#pragma once

#include "base/buffer.h"

#include <set>
#include <utility>

namespace pydag {

template <class First, class Second>
class PairSet {
public:
    bool has(First first, Second second) const { return pairs_.count({key(first), key(second)}) != 0; }
    // Returns whether the pair is new.
    bool add(First first, Second second) {
        if (!pairs_.emplace(key(first), key(second)).second) return false;
        keep(first), keep(second);
        return true;
    }

private:
    static uint32_t key(uint32_t position) { return position; }
    static PyObject *key(nb::handle object) { return object.ptr(); }
    void keep(uint32_t) {}
    void keep(nb::handle object) { kept_.push_borrowed(object.ptr()); }

    using Pair = std::pair<decltype(key(First())), decltype(key(Second()))>;
    std::set<Pair> pairs_;
    RefBuffer<8> kept_;
};

}  // namespace pydag
