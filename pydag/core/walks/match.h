// SPDX-License-Identifier: Apache-2.0
//
// Matches another tree with a structure: finds the object that the tree has for each leaf.
//
// One answer per object: where the structure has a shared object, the other tree must hold one
// object too, or equal values. If it holds the same object at an alias as at the anchor, that costs one
// comparison; another object is walked once for each pair of an anchor and an object.
#pragma once

#include "walks/flatten.h"

namespace pydag {

// When the classes in a structure were looked up: by this very call, or earlier. In the latter case they may
// have been registered differently since.
enum class ClassesOf { kThisCall, kAnyTime };

// Fills `found`, empty before, with one object for each leaf of the structure. ValueError where
// the tree doesn't fit, SharingError where it gives one shared object two answers. Looks first whether it
// fits as it is (flatten_known.h). `roots`: the name of the tree in messages, except in a SharingError, which is
// about two trees.
void match(const Structure &structure, PyObject *tree, Leaves &found, ClassesOf classes = ClassesOf::kThisCall,
           const Roots &roots = Roots());

// Matches one of several trees. In messages it is `rests[1]`, unless there is only one.
void match_rest(const Structure &structure, nb::handle rests, Py_ssize_t number, Leaves &found,
                ClassesOf classes = ClassesOf::kThisCall);

// Decides whether a further answer for a leaf goes with its first one; if not, that is a SharingError.
class Answers {
public:
    virtual bool accept(uint32_t leaf, PyObject *first, PyObject *other) = 0;

protected:
    ~Answers() = default;
};
// The same, with the caller's `answers`. The walk along a known structure isn't tried, since it can't call them.
void match(const Structure &structure, PyObject *tree, Leaves &found, Answers &answers, const Roots &roots = Roots());

}  // namespace pydag
