// SPDX-License-Identifier: Apache-2.0
//
// What the core does in place of the two functions by which another library opens and builds a class.
//
// Calling Python functions for every object is slow. Where it is known how a library's functions work, the core
// does the same itself: it finds the same children, makes the same aux_data, and has the same names for the
// children. So a structure doesn't show who opened a node. Instances that the core can't open, such as those of a
// class that was changed since, are opened by the functions. Python tries a stand-in out with an instance of each
// class: when the functions have opened one, and when they have built one, the core does the same, and Python
// compares what both give. So no function runs but those that were asked for.
#pragma once

#include "base/buffer.h"

namespace pydag {

struct Registration;

// An object that everything has in common that one walk builds: it is made when it is first wanted.
class MadeOnce {
public:
    // What `function()` returned when this walk first asked for it.
    nb::object get(nb::handle function) {
        if (!made_.is_valid() || !function_.is(function)) {
            made_ = call(function);
            function_ = nb::borrow(function);
        }
        return made_;
    }

private:
    nb::object function_, made_;
};

class StandIn {
public:
    struct Opened {
        PyObject **children;  // borrowed from the instance; never null
        uint32_t count;
        nb::object aux_data, entries;  // as the flatten function would give them
        bool owns_children;            // whether the instance's attributes can be reached through it alone
    };

    StandIn() = default;
    StandIn(const StandIn &) = delete;
    StandIn &operator=(const StandIn &) = delete;
    virtual ~StandIn() = default;

    // Opens an instance of the class. False where the functions have to. Runs no Python code.
    virtual bool open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) = 0;
    // Whether a part of aux_data is an object by which the library marks what is a child, and so not the user's.
    virtual bool is_mark(PyObject *) const { return false; }
    // Reads the children of an instance into `children`, if it has this aux_data and `count` children. False if it has
    // others, or if that can't be told. Runs no Python code.
    virtual bool read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children,
                            bool &owns_children) = 0;
    // A new instance; null where the function has to build it. `is_trial`: for Python to compare it.
    virtual nb::object build(const Registration &registration, PyObject *aux_data, PyObject *const *children,
                             uint32_t count, MadeOnce &once, bool is_trial) = 0;
    // Says that what was built for this aux_data is what the function built.
    virtual void set_tried(PyObject *aux_data, uint32_t count) = 0;
    // Puts other children into an instance that has this aux_data.
    virtual void write(PyObject *object, PyObject *aux_data, PyObject *const *children, uint32_t count,
                       MadeOnce &once) = 0;
};

}  // namespace pydag
