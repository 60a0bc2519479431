// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a library whose instances have slots, which hold at most one child, the aux_data, and an object that
// is made anew for each instance that is built.
#pragma once

#include "types/stand_in.h"

#include <array>
#include <vector>

namespace pydag {

class SlotStandIn final : public StandIn {
public:
    struct Slots {
        Py_ssize_t child = 0;  // offset; 0: there is no child
        nb::object entries;    // the name of the child; None where there is none
        Py_ssize_t items = 0;  // of a dict whose sorted items are the aux_data; 0: the slots in `plain` are
        std::vector<Py_ssize_t> plain;
        Py_ssize_t fresh = 0;          // where a new instance gets what `make_fresh()` returns
        nb::object make_fresh, write;  // `write(instance, child)` puts in another child, as the library does
    };
    // Where the items of a dict stood among the sorted ones, in the order of the dict: mostly they stand there again.
    using Order = std::array<uint8_t, 16>;
    SlotStandIn(PyTypeObject *type, Slots slots);

    bool open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) override;
    bool read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children,
                    bool &owns_children) override;
    nb::object build(const Registration &registration, PyObject *aux_data, PyObject *const *children, uint32_t count,
                     MadeOnce &once, bool is_trial) override;
    void set_tried(PyObject *, uint32_t) override { is_tried_ = true; }
    void write(PyObject *object, PyObject *aux_data, PyObject *const *children, uint32_t count,
               MadeOnce &once) override;

private:
    bool is_of_this_version(PyTypeObject *type) const;
    bool has(PyObject *object, PyObject *aux_data);
    nb::object aux_data_of(PyObject *object);

    Slots slots_;
    unsigned version_;  // that of the class when the stand-in was tried out
    bool is_tried_ = false;
    nb::object last_aux_;  // the last one that holds constants alone, which most instances share
    Order order_ = {};
};

}  // namespace pydag
