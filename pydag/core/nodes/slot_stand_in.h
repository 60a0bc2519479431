// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a library whose instances have slots: at most one child, what is aux_data, and an object that each
// instance gets anew when it is built.
#pragma once

#include "types/stand_in.h"

#include <vector>

namespace pydag {

class SlotStandIn final : public StandIn {
public:
    struct Slots {
        Py_ssize_t child = 0;  // offset; 0: there is no child
        nb::object entries;    // the name of the child; None where there is none
        Py_ssize_t items = 0;  // of a dict whose sorted items are the aux_data; 0: the next ones are
        std::vector<Py_ssize_t> plain;
        Py_ssize_t fresh = 0;          // of what a new instance gets from `make_fresh()`
        nb::object make_fresh, write;  // `write(instance, child)`: how the library puts in another child
    };
    SlotStandIn(PyTypeObject *type, Slots slots);

    bool open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) override;
    bool read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children,
                    bool &owns_children) override;
    nb::object build(const Registration &registration, PyObject *aux_data, PyObject *const *children, uint32_t count,
                     MadeOnce &once) override;
    void write(PyObject *object, PyObject *aux_data, PyObject *const *children, uint32_t count,
               MadeOnce &once) override;

private:
    bool is_of_this_version(PyTypeObject *type) const;
    bool has(PyObject *object, PyObject *aux_data) const;
    nb::object aux_data_of(PyObject *object);

    Slots slots_;
    unsigned version_;     // of the class when the stand-in was tried out
    nb::object last_aux_;  // of constants alone: most instances have the same
};

}  // namespace pydag
