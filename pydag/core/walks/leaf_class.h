// SPDX-License-Identifier: Apache-2.0
//
// What a walk knows of the class of the last leaf: most leaves of a tree are of one class.
#pragma once

#include "walks/options.h"

namespace pydag {

class LeafClass {
public:
    // Whether instances of `type` are leaves. False, too, for a class that was never looked up.
    [[gnu::always_inline]] bool is_of_leaves(PyTypeObject *type, const FlattenOptions &options) {
        return type == type_ || set(type, options);
    }
    void forget() { type_ = nullptr; }
    // Whether these leaves have identity, and whether they have it below a node whose leaves are values.
    bool is_tracked() const { return is_tracked_; }
    bool is_tracked_below_all() const { return is_tracked_below_all_; }

private:
    [[gnu::noinline]] bool set(PyTypeObject *type, const FlattenOptions &options) {
        const TypeInfo *const info = options.space->find_known(type);
        const bool is_leaf = info && (pydag::is_leaf(info->kind) || (is_none(info->kind) && options.none_is_leaf));
        if (!is_leaf) return false;
        type_ = type;
        is_tracked_ = (info->identity & options.tracked(false)) != 0;
        is_tracked_below_all_ = (info->identity & options.tracked(true)) != 0;
        return true;
    }

    PyTypeObject *type_ = nullptr;
    bool is_tracked_ = false, is_tracked_below_all_ = false;
};

}  // namespace pydag
