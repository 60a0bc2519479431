// SPDX-License-Identifier: Apache-2.0
//
// What the core does in place of the two functions by which another library opens and builds a class.
//
// Calling Python functions for every object is slow. Where it is known how a library's functions work, the core
// does the same itself: it finds the same children, makes the same aux_data, and has the same names for the
// children. So a structure doesn't show who opened a node. The library's functions open the instances that the core
// can't open, such as those of a class that was changed since. When the functions have opened the first instance of a
// layout, and when they have built one, the core does the same, and the results are compared: so no function runs but
// those that were asked for.
#pragma once

#include "base/buffer.h"

#include <memory>
#include <optional>
#include <vector>

namespace pydag {

struct Registration;

// What everything has in common that one walk builds.
class MadeOnce {
public:
    bool puts_none = false;  // whether it puts None in the place of a leaf
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
    // Where the instances of a class keep their parts: first come their slots, then the values of one dict. An
    // instance that has neither is its own aux_data.
    struct Places {
        std::vector<Py_ssize_t> slots;  // offsets
        bool has_dict = false;
        Py_ssize_t dict_slot = 0;  // the offset of the slot that has the dict; 0: it is `__dict__`
        // Where each instance says which attributes are children: the attribute of the name `kinds` is a `kinds_class`,
        // whose attribute `mapping` is a dict of bools by name. It never changes what it says. Null for other classes.
        nb::object kinds, kinds_class, mapping;
        // The offset of the slot that gets what `make_fresh()` returns when an instance is built; 0 if there is none.
        // Instances that have one have at most one child, in their first slot.
        Py_ssize_t fresh = 0;
        // `write(instance, aux_data, children)` puts other children in, as the library does.
        nb::object make_fresh, write;
        bool is_whole() const { return slots.empty() && !has_dict; }
    };
    struct Opened {
        PyObject **children;  // borrowed from the instance; never null
        uint32_t count;
        nb::object aux_data, entries;  // as the flatten function would give them
        bool owns_children;            // whether the instance's attributes can be reached through it alone
    };

    explicit StandIn(Places places);
    ~StandIn();
    StandIn(const StandIn &) = delete;
    StandIn &operator=(const StandIn &) = delete;

    // Adds a layout: the attributes of some instances, and which parts are children. `names`: the keys of the dict, in
    // the order in which it is built. `children`: a tuple of numbers of parts. `aux_data` says what it is made of:
    // a number is that part, a list of one object is that object, a tuple within it is a tuple of these. False where
    // the core can't open or build such instances.
    bool add_layout(PyTypeObject *type, nb::tuple names, nb::tuple children, nb::tuple aux_data, nb::handle entries);

    // Opens an instance of the class. False where the functions have to. Runs no Python code.
    bool open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened);
    // Reads the children of an instance into `children`, if it has this aux_data and `count` children. False if it has
    // others, or if that can't be told. Runs no Python code.
    bool read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children, bool &owns_children);
    // A new instance; null where the function has to build it, as it does before `try_out`.
    nb::object build(const Registration &registration, PyObject *aux_data, PyObject *const *children, uint32_t count,
                     MadeOnce &once, bool is_trial = false);
    // Builds such instances from now on if that gives what the function built; returns whether it does, or nothing
    // where the core can't build it.
    std::optional<bool> try_out(const Registration &registration, PyObject *aux_data, PyObject *const *children,
                                uint32_t count, PyObject *expected);
    // Puts other children into an instance that has this aux_data.
    void write(PyObject *object, PyObject *aux_data, PyObject *const *children, uint32_t count, MadeOnce &once) const;
    // Whether a part of aux_data is an object by which the library marks what is a child, and so not the user's.
    bool is_mark(PyObject *part) const { return places_.kinds_class.is(reinterpret_cast<PyObject *>(Py_TYPE(part))); }

private:
    struct Layout;
    struct Parts {
        Buffer<PyObject *, 32> values;
        bool are_owned = true;  // whether they can be reached through the instance alone
    };

    bool is_of_this_version(PyTypeObject *type) const;
    nb::object dict_in(PyObject *object) const;
    bool says_children(Layout &layout, const Parts &parts) const;
    bool has_same_parts(PyObject *a, PyObject *b) const;
    template <class Fits>
    Layout *find_layout(const Fits &fits);
    template <class Fits>
    Layout *read(PyObject *object, Parts &parts, const Fits &fits);
    Layout *find_described(PyObject *aux_data, PyObject *const *children, uint32_t count, Parts &parts);

    Places places_;
    unsigned version_ = 0;                          // of the class when its layouts were tried out
    std::vector<std::unique_ptr<Layout>> layouts_;  // the one that was met last is the first
    size_t num_names_ = 0;                          // of all layouts
};

}  // namespace pydag
