// SPDX-License-Identifier: Apache-2.0
//
// Holds another tree against a structure: what stands in it at the place of each leaf.
//
// One answer per object: where the structure has a shared object, the other tree must hold one
// object too, or equal values. An alias at which it holds the very object that it held at the
// anchor costs one comparison; another object is walked once for each (anchor, object).
#pragma once

#include "walks/flatten.h"

namespace pydag {

// When the classes in a structure were looked up: by this very call, or who knows when. Meanwhile they
// may have been registered otherwise.
enum class ClassesOf { kThisCall, kAnyTime };

// Fills `found`, empty before, with one object for each leaf of the structure. ValueError where
// the tree doesn't fit, SharingError where it gives one shared object two answers. Looks first whether it
// fits as it is (flatten_known.h).
void match(const Structure &structure, PyObject *tree, Leaves &found, ClassesOf classes = ClassesOf::kThisCall);

// Decides about another answer for a leaf than its first one; false makes a SharingError.
class Answers {
public:
    virtual bool accept(uint32_t leaf, PyObject *first, PyObject *other) = 0;

protected:
    ~Answers() = default;
};
// The other walks can't ask: this one alone.
void match(const Structure &structure, PyObject *tree, Leaves &found, Answers &answers);

}  // namespace pydag
